"""Selects the back-end of a run: the named one, or for ``auto`` the fastest one that is ready on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from fencepost.clusters import backends, doctor
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.backends import Backend, ManagedBackend
from fencepost.clusters.doctor import Prerequisite
from fencepost.clusters.names import AUTO, FOREIGN
from fencepost.errors import ScenarioError


def backend(name: str, config: Path | None = None, permitted: bool = False, folder: Path = Path()) -> Backend:
    """The back-end of this name; see ``backends.named``."""
    if name == AUTO and config is None and not permitted:
        return auto()
    return backends.named(name, config, permitted, folder)


def existing(name: str, config: Path | None = None, permitted: bool = False) -> Attachment:
    """The cluster of another owner that has this name; see ``backends.named``.

    Raises:
        ScenarioError: the name is that of a back-end that starts clusters of its own.
    """
    found = backend(name, config, permitted)
    if not isinstance(found, Attachment):
        raise ScenarioError(
            f"{name} starts a cluster of its own for each run: name a cluster that exists, as {FOREIGN}"
        )
    return found


def own(backend: Backend) -> ManagedBackend:
    """The same back-end, or ``auto`` if it does not start clusters."""
    return backend if isinstance(backend, ManagedBackend) else auto()


@cache
def auto() -> ManagedBackend:
    """The back-end that ``auto`` selects on this machine, with the reason."""
    return pick([(one, doctor.missing_parts(one)) for one in (make() for make in backends.OWN.values())])


def pick(found: Sequence[tuple[ManagedBackend, Sequence[Prerequisite]]]) -> ManagedBackend:
    """The first back-end that is ready, or that the first run makes ready; else the first one.

    ``found``: back-ends with their missing parts, the fastest first.
    """
    for one, lacks in found:
        if not doctor.beyond_reach(lacks):
            return _because(one, lacks, [other for other in found if other[0] is not one and other[1]])
    return _because(*found[0], [])


def _because(
    one: ManagedBackend, lacks: Sequence[Prerequisite], others: Sequence[tuple[ManagedBackend, Sequence[Prerequisite]]]
) -> ManagedBackend:
    state = f"the first run fetches {_names(lacks)}" if lacks else "ready"
    if missing := doctor.beyond_reach(lacks):
        state = f"no back-end is ready; this one needs {_names(missing)}"
    rest = [f"{other} needs {_names(missing)}" for other, missing in others]
    return replace(one, why="; ".join([f"auto: {state}", *(rest or ["the fastest"])]))


def _names(parts: Sequence[Prerequisite]) -> str:
    return ", ".join(part.name for part in parts)
