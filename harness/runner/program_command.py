"""The command of a user's program: what of it is refused before anything starts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from fencepost.clusters.capabilities import Abilities
from fencepost.errors import PlanError
from fencepost.scenario.group import Group

PYTHON = re.compile(r"(python|pypy)[\d.]*t?")
APART = "ISE"  # with any of these options Python imports nothing of ours
VALUED = "WX"  # a value follows these, in the same word or in the next one
LAST = "cm"  # after these all is the program's
LONG_AND_VALUED = "--check-hash-based-pycs"


def check_command(group: Group, abilities: Abilities, backend: str) -> None:
    """Refuse a program beside our loop that is not there, that the back-end cannot run, or that would not be redirected
    to the run's brokers. Raises PlanError."""
    if not group.command:
        return
    if not group.image and shutil.which(group.command[0]) is None:
        raise PlanError(f"the group's command begins with {group.command[0]!r}, and no such program can be found")
    if group.imports and (option := keeping_apart(group.command)):
        raise PlanError(
            f"the group's command runs Python with the option {option}: with -I, -E or -S it does not import what has "
            "its clients find the run's brokers, so the program would use the addresses in its own configuration"
        )
    need = "image" if group.image else "command"
    without = "it has no containers; use docker" if group.image else "it runs only our own members"
    if lacking := abilities[need]() if need in abilities else without:
        raise PlanError(f"the group's program cannot be run by the back-end {backend!r}: {lacking}")


def keeping_apart(command: Sequence[str]) -> str:
    """The option of a Python interpreter, as the command has it, that keeps all that is ours from a program; empty:
    there is none."""
    words = iter(command)
    if not PYTHON.fullmatch(Path(next(words)).name):
        return ""
    for word in words:
        if not word.startswith("-") or word in ("-", "--"):
            return ""
        if word.startswith("--"):
            next(words, "") if word == LONG_AND_VALUED else None
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter in APART:
                return word
            if letter in LAST:
                return ""
            if letter in VALUED:
                next(words, "") if place == len(word) else None
                break
    return ""
