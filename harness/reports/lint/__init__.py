"""The lint of a group's configuration: common mistakes. It changes no verdict.

``settings`` has the rules for the settings of one member, ``group`` the rules for the group and its topics, and
``gathering`` reads their inputs from the run folder.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from fencepost.reports.folder import Folder
from fencepost.reports.lint import gathering, group, settings


class Advice(NamedTuple):
    """One sentence, and the members or topics (or the group) that it concerns, by name."""

    sentence: str
    to: tuple[str, ...]


def advise(folder: Folder) -> list[Advice]:
    """All advice on a run, each sentence once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for member, life in gathering.lives(folder):
        for sentence in filter(None, (rule(life) for rule in settings.RULES)):
            found[sentence][member.name] = None
    for group_rule in group.RULES:
        for sentence, to in group_rule(folder):
            found[sentence][to] = None
    return [Advice(sentence, tuple(sorted(to, key=lambda name: (len(name), name)))) for sentence, to in found.items()]
