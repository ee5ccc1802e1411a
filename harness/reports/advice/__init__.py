"""The lint of a group's configuration: what people regret, or wonder at. It changes no verdict.

``settings`` are rules of what one member runs with, ``group`` those of the group and its topics, and ``gathering``
reads what they go by.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from fencepost.reports.advice import gathering, group, settings
from fencepost.reports.folder import Folder


class Advice(NamedTuple):
    """One sentence, and whom it is for: names of members, or of topics, or the group."""

    sentence: str
    to: tuple[str, ...]


def advise(folder: Folder) -> list[Advice]:
    """All advice on a run, each sentence once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for member, life in gathering.lives(folder):
        for sentence in filter(None, (rule(life) for rule in settings.RULES)):
            found[sentence][member.name] = None
    for told in group.RULES:
        for sentence, to in told(folder):
            found[sentence][to] = None
    return [Advice(sentence, tuple(sorted(to, key=lambda name: (len(name), name)))) for sentence, to in found.items()]
