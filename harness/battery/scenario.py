"""A program, a load and a schedule as a scenario. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencepost.battery.program import Program
from fencepost.battery.request import BatteryRequest
from fencepost.checkers import Progress
from fencepost.model.topic import Topic
from fencepost.scenario.group import Group
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.planning import Entry
from fencepost.workloads import OwnProgram

FIRST_S = 2.0  # before the first fault: the lag that is normal is measured here
AFTER_S = 4.0  # records go on for so long after the last fault is healed
LATE_S = 20.0  # slow proofs may delay the end by so much
SESSIONS = 2.0  # a dead member is missed after its session; the group has so many sessions, and
RECOVERY_S = 30.0  # so many seconds, to consume everything


def build(
    request: BatteryRequest,
    program: Program,
    name: str,
    about: str = "",
    *,
    rate_hz: float = 1.0,
    burst_every_s: float = 0.0,
    schedule: Sequence[Entry] = (),
    members: int = 0,
    spare: int = 0,
    added_partitions: bool = False,
) -> Scenario:
    """The scenario with these faults; ``members`` replaces the number that was asked for. ``added_partitions``:
    producers write to partitions that the schedule adds, if members look for them in time."""
    within_s = round(RECOVERY_S + SESSIONS * program.session_timeout_s, 3)
    looks = program.looks_for_partitions if added_partitions else {}
    workload = OwnProgram(
        processed=request.rule,
        effects=request.effects,
        payload=request.payload,
        rate_hz=rate_hz,
        burst_every_s=burst_every_s,
        added_partitions=bool(looks),
    )
    group = Group(
        client=program.client,
        command=request.command,
        members=members or request.members,
        spare=spare,
        protocol=program.protocol,
        static=program.static,
        config={**program.config(), **looks},
        image=request.image,
    )
    drawn = Scenario(
        name=name,
        about=about,
        topics=tuple(Topic(topic, partitions=request.partitions) for topic in program.topics),
        group=group,
        workload=workload,
        schedule=tuple(schedule),
        promises=tuple(replace(p, within_s=within_s) if isinstance(p, Progress) else p for p in workload.promises()),
        drain_s=within_s,
    )
    lasts_s = faults_end_s(drawn) + AFTER_S
    least = max(1, round(rate_hz * lasts_s))
    return replace(drawn, chaos_s=lasts_s + LATE_S, after_faults_s=AFTER_S, min_records=least)


def faults_end_s(scenario: Scenario) -> float:
    """When its last step is healed, as planned, in seconds after the group is warm."""
    return max((step.end_s for step in scenario.drawn(0).steps), default=FIRST_S)
