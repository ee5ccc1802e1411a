"""The names of back-ends on the command line, in pytest and in a test's fixture."""

from __future__ import annotations

AUTO, LOCAL, DOCKER = "auto", "local", "docker"
ATTACH, CONTAINER, COMPOSE = "attach:", "container:", "compose:"
NAMES = (AUTO, LOCAL, DOCKER, f"{ATTACH}HOST:PORT", f"{CONTAINER}NAME", f"{COMPOSE}FILE")
PREFIX = "fencepost-"  # begins the names of everything that runs create in clusters of others
CLOCKS = "fencepost.clocks"  # with such a prefix: a topic that shows the clocks of brokers; no scenario's topic has it
METAVAR, FOREIGN = "|".join(NAMES), "|".join(NAMES[3:])


def is_name(text: str) -> bool:
    """Whether a text has the form of a back-end's name, whatever follows the colon."""
    return text in (AUTO, LOCAL, DOCKER) or is_foreign(text)


def is_foreign(text: str) -> bool:
    """Whether a name leads to a cluster of another owner."""
    return text.startswith((ATTACH, CONTAINER, COMPOSE))
