"""A change of assignor or protocol that stays: it is not taken back, and whoever ends the member later finds it so."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import ChangeAssignor, ChangeProtocol, ScaleIn, _bounced
from fencepost.group import member_handle
from fencepost.group.member_handle import MemberHandle
from fencepost.interfaces import Fault, Target
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import ScheduledFault, at
from fencepost.schedule.fault_tolerance import ends_for_good, lost_guarantees
from fencepost.targets import member
from fencepost.witnesses.base import Observation
from fencepost.witnesses.processes import GONE
from fencepost.workloads import PollLoop

TO = ("roundrobin", "range")


def asked(*schedule: ScheduledFault, protocol: str = "eager") -> Scenario:
    return Scenario("upgrade", [Topic("orders")], Group(members=3, protocol=protocol), PollLoop(), schedule)


@pytest.mark.parametrize("fault", [ChangeAssignor(TO, stays=True), ChangeProtocol(stays=True)])
def test_there_is_nothing_to_heal(fault: Fault) -> None:
    assert not fault.heals
    (step,) = asked(at(1, fault, member(0))).plan(1).steps
    assert step.heal_after_s is None
    with pytest.raises(PlanError, match="has nothing to heal: leave heal_after out"):
        asked(at(1, fault, member(0), heal_after=1)).plan(1)


@pytest.mark.parametrize("fault", [ChangeAssignor(TO), ChangeProtocol()])
def test_what_does_not_stay_is_taken_back(fault: Fault) -> None:
    assert fault.heals
    (step,) = asked(at(1, fault, member(0))).plan(1).steps
    assert step.heal_after_s


def test_the_wrong_way_cannot_stay() -> None:
    with pytest.raises(
        ScenarioError, match=r"found stays=true without to; a permanent change needs the new assignors, to=\[...\]"
    ):
        ChangeAssignor(stays=True)


def test_a_plan_of_two_bounces_survives_the_way_through_json() -> None:
    first, second = ({"type": "change_assignor", "to": to, "stays": True} for to in (list(TO), ["roundrobin"]))
    steps = [
        {"at": 3 * turn + number, "fault": fault, "target": {"type": "member", "index": number}}
        for turn, fault in enumerate((first, second))
        for number in range(3)
    ]
    scenario = Scenario.from_json({**asked().to_json(), "schedule": steps})
    plan = scenario.plan(1)
    assert [step.fault for step in plan.steps] == [ChangeAssignor(to, True) for to in (TO, TO[:1]) for _ in range(3)]
    assert Scenario.from_json(json.loads(json.dumps(scenario.to_json()))).plan(1) == plan


def test_later_steps_find_the_group_by_the_protocol_that_it_has_by_then() -> None:
    there, back = ChangeProtocol(stays=True), ChangeProtocol("eager", stays=True)
    asked(*(at(n, there, member(n)) for n in range(3)), at(5, back, member(0))).plan(1)
    asked(at(1, back, member(0)), at(2, ChangeAssignor(TO), member(0)), protocol="consumer").plan(1)
    for before in ((), (at(1, ChangeProtocol(), member(1)),), (at(9, there, member(1)),)):
        with pytest.raises(PlanError, match="cannot change to 'eager': it already has that protocol"):
            asked(*before, at(5, back, member(0))).plan(1)


def test_who_is_changed_for_good_comes_back() -> None:
    scenario = asked(*(at(20.0 * n, ChangeProtocol(stays=True), member(n)) for n in range(3)))
    assert not lost_guarantees(scenario.plan(1).steps, scenario.inventory())
    at_once = asked(*(at(1, ChangeProtocol(stays=True), member(n)) for n in range(3)))
    assert lost_guarantees(at_once.plan(1).steps, at_once.inventory())
    assert ends_for_good(ScaleIn())
    assert not ends_for_good(ChangeProtocol(stays=True))


def test_a_member_adopts_what_its_later_lives_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, Any]] = []

    class Life(SimpleNamespace):
        def __init__(self, home: Any, actor: str, module: str, config: dict[str, Any], interpreter: Any) -> None:
            begun.append(config)
            super().__init__(pid=None)

    monkeypatch.setattr(member_handle, "Incarnation", Life)
    home: Any = None
    one = MemberHandle(home, 0, 0, {"protocol": "eager", "assignors": ""})
    one.launch(protocol="consumer")
    one.launch()
    one.adopt(protocol="consumer")
    one.launch(assignors="range")
    one.launch()
    reported = [(config["protocol"], config["assignors"]) for config in begun]
    assert reported == [("consumer", ""), ("eager", ""), ("consumer", ""), ("consumer", "range"), ("consumer", "")]


class Bounceable:
    """A member of the range assignor that ends when it is asked to, and remembers how it was started again."""

    name, pid = "member-0", 1

    def __init__(self) -> None:
        self.begun: list[tuple[str, str, str]] = []

    def reported(self, kind: str) -> list[dict[str, Any]]:
        return [{"detail": {"protocol": "eager", "config": {"partition.assignment.strategy": "range"}}}]

    def signal(self, number: int) -> None:
        self.begun.append(("ended", "", ""))

    def wait_ended(self, within_s: float) -> int:
        return 0

    def state(self) -> str:
        return GONE

    def launch(self, *, protocol: str, assignors: str) -> None:
        self.begun.append(("launched", protocol, assignors))

    def adopt(self, *, protocol: str, assignors: str) -> None:
        self.begun.append(("adopted", protocol, assignors))


@pytest.mark.parametrize("stays", [False, True])
def test_only_what_does_not_stay_ends_the_member_again(monkeypatch: pytest.MonkeyPatch, stays: bool) -> None:
    monkeypatch.setattr(_bounced.ProcessIdentity, "of", lambda one: one)
    monkeypatch.setattr(_bounced, "ended", lambda lives, codes: Observation("", "ended"))
    monkeypatch.setattr(_bounced.Bounced, "in_group", lambda one, terms: Observation("", f"by {terms}"))
    one = Bounceable()
    world: Any = SimpleNamespace(members=[one])
    injection = ChangeAssignor(TO, stays=stays).inject(world, Target(members=(0,)))
    assert injection.proven().took_effect
    there = ("ended", "", ""), ("adopted" if stays else "launched", "eager", "roundrobin,range")
    assert tuple(one.begun) == there
    injection.undo()
    assert injection.healed().took_effect
    back = () if stays else (("ended", "", ""), ("launched", "eager", "range"))
    assert tuple(one.begun) == there + back
