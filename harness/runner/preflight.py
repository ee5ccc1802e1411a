"""Checks, before anything starts, that plans can be performed; one error lists everything that is wrong.

It checks the plan itself, the back-end, the group's command, this machine, and the group's clients. Whether the brokers
accept the group's settings is seen only on a running cluster, in the warm-up.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from fencepost.clusters import doctor
from fencepost.clusters.backends import Backend
from fencepost.clusters.capabilities import Abilities, needs, with_packet_faults
from fencepost.clusters.trials import try_settings
from fencepost.errors import Complaints, PlanError, ProvisionError, ScenarioError, refuse
from fencepost.interfaces import Workload
from fencepost.scenario.group import Group
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan
from fencepost_member.config import ConfigError
from fencepost_member.producing import contents

PYTHON = re.compile(r"(python|pypy)[\d.]*t?")
ISOLATING = "ISE"  # with any of these options Python does not import our instrumentation
VALUED = "WX"  # options with a value, in the same word or in the next one
LAST = "cm"  # after these options, all words are the program's
LONG_AND_VALUED = "--check-hash-based-pycs"


def check(cases: Iterable[tuple[Scenario, Plan]], backend: Backend, runs: Path, report: Callable[[str], None]) -> None:
    """Refuse plans that cannot be performed with their scenarios.

    Args:
        backend: provides the clusters.
        runs: folder in which run folders would be made.
        report: called with a sentence when a client takes long to answer.

    Raises:
        ScenarioError: lists everything that is wrong, including what is missing on this machine.
        ProvisionError: the plans are right, but parts are missing on this machine; lists all of them.
    """
    complaints, name = Complaints(), str(backend)
    groups: list[Group] = []
    for scenario, drawn in cases:
        plan, group = with_packet_faults(drawn, scenario.network, backend.abilities), scenario.group
        with complaints.gather(PlanError):
            scenario.checked(plan)
        with complaints.gather(PlanError):
            check_abilities(plan, backend.abilities, name)
        with complaints.gather(PlanError):
            check_command(group, backend.abilities, name)
        with complaints.gather(ScenarioError):
            backend.permit(scenario, plan)
        with complaints.gather(ScenarioError):
            check_samples(scenario.workload)
        groups += [] if group in groups else [group]
    missing = Complaints()
    for group in groups:
        with complaints.gather(ScenarioError), missing.gather(ProvisionError):
            try_settings(group, backend.abilities, report)
    with missing.gather(ProvisionError):
        doctor.require(backend, runs)
    refuse([*complaints.found, *missing.found])


def check_abilities(plan: Plan, abilities: Abilities, backend: str) -> None:
    """Refuse a plan that needs capabilities that the back-end does not have here.

    Raises:
        PlanError: lists each missing capability, with the step that needs it, and either the back-end's capabilities
            or what is missing on this machine.
    """
    refuse(map(PlanError, _beyond(plan, abilities, backend)))


def _beyond(plan: Plan, abilities: Abilities, backend: str) -> Iterator[str]:
    for need, first in sorted({need: step for step in reversed(plan.steps) for need in needs(step)}.items()):
        if need not in abilities:
            yield (
                f"{first.named} needs {need}, but the back-end {backend!r} offers only "
                f"{', '.join(sorted(abilities)) or 'nothing'}; choose another back-end or another fault"
            )
        elif reason := abilities[need]():
            yield f"{first.named} needs {need}, but on this machine {reason}"


def check_samples(workload: Workload) -> None:
    """Refuse a file of sample messages that cannot be read. Raises ScenarioError."""
    payload = str(workload.producer_config().get("payload", ""))
    if contents.are_samples(payload):
        try:
            contents.read(payload)
        except ConfigError as error:
            raise ScenarioError(str(error)) from error


def check_command(group: Group, abilities: Abilities, backend: str) -> None:
    """Refuse a user's program that does not exist, that the back-end cannot run, or that could not be redirected to
    the run's brokers.

    Raises:
        PlanError: lists everything that is wrong.
    """
    refuse(map(PlanError, _unusable(group, abilities, backend)) if group.runs_programs else ())


def _unusable(group: Group, abilities: Abilities, backend: str) -> Iterator[str]:
    for command in dict.fromkeys(group.commands):
        if not group.image and shutil.which(command[0]) is None:
            yield (
                f"the group's command begins with {command[0]!r}, but no such program was found: install it, or give "
                "its path"
            )
        if group.imports and (option := isolating_option(command)):
            yield (
                f"the group's command runs Python with the option {option}: with -I, -E or -S it does not import the "
                "module that directs its clients to the run's brokers, so the program would use the addresses in its "
                "own configuration; leave the option out"
            )
    need = "image" if group.image else "command"
    without = "it has no containers; use docker" if group.image else "it runs only our own members"
    if reason := abilities[need]() if need in abilities else without:
        yield f"the back-end {backend!r} cannot run the group's program: {reason}"


def isolating_option(command: Sequence[str]) -> str:
    """The option in a command, as it is written there, with which Python does not import our instrumentation; empty if
    there is none, or if the command does not run Python."""
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
            if letter in ISOLATING:
                return word
            if letter in LAST:
                return ""
            if letter in VALUED:
                next(words, "") if place == len(word) else None
                break
    return ""
