"""Schedules become plans by the seed alone, and what cannot work is refused before anything starts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from fencepost.clusters.capabilities import network, with_packet_faults
from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import (
    BlackHole,
    ChangeSubscription,
    DropPackets,
    MoveCoordinator,
    Pause,
    RemoveMember,
    ScaleOut,
    Stall,
)
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import Inventory
from fencepost.model.settings import SESSION
from fencepost.runner.preflight import check_abilities
from fencepost.schedule.entries import ScheduledFault, at, every, past_session
from fencepost.schedule.plan import Plan, check_plan, plan_from_json, plan_to_json
from fencepost.schedule.planning import make_plan
from fencepost.targets import coordinator, idle, member, one_member

TIMES = {SESSION: 6.0}


@dataclass(frozen=True)
class Healing:
    """A fault that can be healed, aimed at members."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = ""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        raise NotImplementedError


@dataclass(frozen=True)
class Moving:
    """A fault with nothing to heal that chooses its target by itself."""

    needs: ClassVar[frozenset[str]] = frozenset({"admin"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = ""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        raise NotImplementedError


def checked(plan: Plan) -> Plan:
    check_plan(
        plan, Inventory(3, 3, {"orders": 12}), {"session.timeout.ms": 45.0, "max.poll.interval.ms": 300.0}, chaos_s=100
    )
    return plan


SCHEDULE = [at(5, Moving()), every(8, Healing(), one_member(), heal_after=past_session(1.5), until_s=40)]


def test_who_is_removed_is_fenced_at_once():
    checked(make_plan([at(1, RemoveMember(), one_member(), expect="fenced")], 1, TIMES))
    with pytest.raises(PlanError, match="lasts only 0 s"):
        checked(make_plan([at(1, Moving(), expect="fenced")], 1, TIMES))


def test_the_same_seed_gives_the_same_plan_and_another_seed_another():
    assert make_plan(SCHEDULE, 1, TIMES) == make_plan(SCHEDULE, 1, TIMES)
    assert make_plan(SCHEDULE, 1, TIMES) != make_plan(SCHEDULE, 2, TIMES)


def test_steps_are_numbered_in_the_order_of_time_and_stay_within_their_bounds():
    steps = make_plan(SCHEDULE, 7, TIMES).steps
    assert [s.step for s in steps] == list(range(6))
    assert [s.at_s for s in steps] == sorted(s.at_s for s in steps)
    repeated = [s.at_s for s in steps if isinstance(s.fault, Healing)]
    assert all(abs(at_s - 8 * (n + 1)) <= 2 for n, at_s in enumerate(repeated))
    assert all(0 <= s.pick < 1 for s in steps)


def test_past_session_is_measured_in_session_time_outs():
    assert {s.heal_after_s for s in make_plan(SCHEDULE, 1, TIMES).steps} == {None, 9.0}


def test_taking_an_entry_away_leaves_the_draws_of_the_entries_before_it():
    whole, shorter = make_plan(SCHEDULE, 3, TIMES).steps, make_plan(SCHEDULE[:1], 3, TIMES).steps
    assert [(s.at_s, s.pick) for s in shorter] == [(s.at_s, s.pick) for s in whole if isinstance(s.fault, Moving)]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (at(5, Moving(), heal_after=3), "nothing to heal"),
        (at(5, Healing()), "needs a target"),
        (at(5, Healing(), coordinator()), "hits members"),
        (at(5, BlackHole(peers="coordinator"), coordinator()), "hits members, but its target"),
        (at(5, BlackHole(brokers=(1,)), coordinator()), "hits members, but its target"),
        (at(5, Moving(), one_member()), "chooses its target itself"),
        (at(-1, Moving()), "before the group is warm"),
        (at(5, Healing(), one_member(), heal_after=-1), "has a negative heal_after"),
        (at(5, Healing(), one_member(), heal_after=7, expect="fenced"), "session.timeout.ms of 45 s"),
        (at(5, Moving(), expect="fenced"), "lasts only 0 s"),
        (at(5, Stall(), one_member(), heal_after=46, expect="fenced"), "max.poll.interval.ms of 300 s: use a longer"),
        (at(5, Pause(), idle(), heal_after=2), "hits brokers or members, but its target .* selects idle members"),
        (at(5, ScaleOut(), one_member()), "hits idle members, but its target .* selects members"),
        (
            at(5, ChangeSubscription(), one_member(), heal_after=2),
            "drops all its topics .* the workload needs one more",
        ),
        (
            at(5, ChangeSubscription(("mail",)), one_member(), heal_after=2),
            "there is no topic 'mail'; there are orders",
        ),
        (at(5, ScaleOut(), idle()), r"idle\(1\) needs 1 spare members, the group has 0"),
        (at(5, Moving(), expect="sunshine"), "known expectations"),
        (every(8, Healing(), one_member(), until_s=4), "never fires"),
        (ScheduledFault(8, Healing(), one_member(), every_s=8), "belong together"),
        (ScheduledFault(8, Healing(), one_member(), until_s=8), "belong together"),
    ],
)
def test_a_step_that_cannot_do_what_it_says_is_refused_with_the_reason(entry, sentence):
    with pytest.raises(PlanError, match=sentence):
        checked(make_plan([entry], 1, {SESSION: 45.0}))


def test_a_pause_past_the_session_time_out_may_expect_fencing():
    assert checked(
        make_plan([at(5, Healing(), one_member(), heal_after=46, expect="fenced")], 1, {SESSION: 45.0})
    ).steps


def test_a_plan_that_needs_what_the_back_end_lacks_is_refused():
    plan = make_plan(SCHEDULE, 1, TIMES)
    check_abilities(plan, {"signal": str, "admin": str}, "local")
    with pytest.raises(PlanError, match="needs signal, but the back-end 'far' offers only admin"):
        check_abilities(plan, {"admin": str}, "far")
    with pytest.raises(PlanError, match="needs signal, but on this machine nobody listens: wake them up"):
        check_abilities(plan, {"signal": lambda: "nobody listens: wake them up", "admin": str}, "local")


def test_what_can_be_done_to_the_network_is_told_with_what_is_missing():
    assert network({"links": str, "packets": lambda: "iptables is missing"}) == {
        "links": "yes",
        "packets": "no: iptables is missing",
    }
    assert network({"links": str})["packets"] == "no: not with this back-end"


def lost(what):
    return {"signal": str, "links": str, "packets": lambda: what}


@pytest.mark.parametrize(
    ("wanted", "lacking", "fault"),
    [
        ("", "", BlackHole(direction="to", brokers=(2,))),
        ("packets", "", DropPackets(direction="to", brokers=(2,))),
        ("packets", "iptables is missing", DropPackets(direction="to", brokers=(2,))),  # which is refused
        ("best", "", DropPackets(direction="to", brokers=(2,))),
        ("best", "iptables is missing", BlackHole(direction="to", brokers=(2,))),
    ],
)
def test_what_proxies_and_packets_both_can_do_is_done_as_the_scenario_wants(wanted, lacking, fault):
    schedule = [
        at(1, BlackHole(direction="to", brokers=(2,)), member(1), heal_after=3),
        at(2, Pause(), member(1), heal_after=1),
    ]
    plan, abilities = make_plan(schedule, 5, TIMES), lost(lacking)
    done = with_packet_faults(plan, wanted, abilities)
    assert done.steps == (replace(plan.steps[0], fault=fault), plan.steps[1])
    reported = network(abilities, wanted)
    assert reported.get("used", "links") == ("packets" if isinstance(fault, DropPackets) else "links")
    if lacking and isinstance(fault, DropPackets):
        with pytest.raises(PlanError, match="needs packets, but on this machine iptables is missing"):
            check_abilities(done, abilities, "local")
    else:
        check_abilities(done, abilities, "local")


def test_a_plan_is_the_same_after_its_json():
    schedule = [at(1, BlackHole(direction="to", brokers=(2,)), member(1)), at(0, MoveCoordinator()), *SCHEDULE[2:]]
    plan = make_plan(schedule, 5, TIMES)
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan


PLAN = plan_to_json(make_plan([at(1, Pause(), member(1)), at(2, MoveCoordinator())], 5, TIMES))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seed": "five"}, "the plan: seed must be a whole number, but found 'five'"),
        ({"steps": {}}, "the plan: steps must be a list"),
        ({"steps": [{"fault": "dance"}]}, "there is no fault 'dance'"),
        ({"steps": [{**PLAN["steps"][0], "target": {"type": "member"}}]}, "target member needs the option 'index'"),
        ({"steps": [{**PLAN["steps"][0], "at_s": "soon"}]}, "at_s must be a number, but found 'soon'"),
        ({"steps": [{"fault": "pause"}]}, "a step of the plan needs the option"),
    ],
)
def test_what_is_no_plan_is_refused_with_what_is_wrong(change, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        plan_from_json({**PLAN, **change})


@pytest.mark.parametrize("missing", ["seed", "steps"])
def test_a_plan_has_a_seed_and_steps(missing):
    with pytest.raises(ScenarioError, match=f"a plan needs its {missing}"):
        plan_from_json({name: value for name, value in PLAN.items() if name != missing})


@pytest.mark.parametrize(
    ("number", "change", "sentence"),
    [
        (0, {"heal_after_s": None}, r"step 0 \(Pause at 1 s\) must be healed"),
        (0, {"heal_after_s": -1}, "has a negative heal_after"),
        (1, {"heal_after_s": 3}, "nothing to heal"),
        (0, {"heal_after_s": 99.5}, "is over only after 100.5 s, but the chaos phase ends after chaos_s = 100"),
        (0, {"target": {"type": "member", "index": 3}}, "there is no member 3; there are 0 to 2"),
    ],
)
def test_a_plan_from_elsewhere_is_checked_as_one_of_a_schedule_is(number, change, sentence):
    changed = [{**step, **change} if step["step"] == number else step for step in PLAN["steps"]]
    with pytest.raises(PlanError, match=sentence):
        checked(plan_from_json({**PLAN, "steps": changed}))


def test_steps_that_were_edited_by_hand_are_put_in_order():
    late, early = PLAN["steps"]
    plan = plan_from_json({**PLAN, "steps": [{**late, "at_s": 9}, early]})
    assert [(s.step, s.at_s, type(s.fault).__name__) for s in plan.steps] == [
        (0, 2, "MoveCoordinator"),
        (1, 9, "Pause"),
    ]
