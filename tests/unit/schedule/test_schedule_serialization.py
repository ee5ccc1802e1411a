"""Entries of a schedule combine, are drawn by themselves, keep out of quiet spans, and survive JSON and TOML."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import BlackHole, Bounce, CutConnections, Kill, MoveCoordinator, Pause, Refuse
from fencepost.model.settings import SESSION
from fencepost.model.topic import Topic
from fencepost.scenario import loader
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.combinators import (
    Mix,
    Sequence,
    Together,
    mix,
    rolling_bounce,
    rolling_deploy,
    sequence,
    together,
)
from fencepost.schedule.entries import at, every, flap, past_session
from fencepost.schedule.fault_tolerance import lost_guarantees
from fencepost.schedule.plan import Step
from fencepost.schedule.planning import Entry, Quiet, make_plan, quiet
from fencepost.schedule.swarm import Swarm, swarm
from fencepost.targets import all_members, brokers, coordinator, idle, member, one_member
from fencepost.workloads import PollLoop

SCENARIO = Scenario(
    name="entries",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, config={"session.timeout.ms": 6000}),
    workload=PollLoop(),
    promises=PollLoop().promises(),
    chaos_s=1000,
)


def scenario(*schedule: Entry | Quiet) -> Scenario:
    return Scenario(**{**vars(SCENARIO), "schedule": schedule})


def steps(*schedule: Entry | Quiet, seed: int = 1) -> tuple[Step, ...]:
    return scenario(*schedule).plan(seed).steps


def told(*schedule: Entry | Quiet, seed: int = 1) -> list[tuple[float, str]]:
    return [(step.at_s, type(step.fault).__name__) for step in steps(*schedule, seed=seed)]


def drawn(*schedule: Entry | Quiet, seed: int = 1) -> Counter[Step]:
    """The steps whatever their numbers."""
    return Counter(Step(**{**vars(step), "step": 0}) for step in steps(*schedule, seed=seed))


PAUSE = at(0, Pause(), one_member(), heal_after=2)
KILL = at(0, Kill(), member(1), heal_after=past_session(1.5))
MOVE = at(0, MoveCoordinator())


def test_a_sequence_goes_on_a_pause_after_each_part_is_healed():
    assert told(sequence(5, PAUSE, KILL, MOVE, pause_s=3)) == [
        (5, "Pause"),
        (10, "Kill"),
        (22, "MoveCoordinator"),
    ]


def test_times_of_parts_count_from_their_turn_and_parts_nest():
    inner = together(1, at(0.5, Pause(), member(0), heal_after=4), MOVE)
    assert told(sequence(5, inner, MOVE, pause_s=1)) == [
        (6, "MoveCoordinator"),
        (6.5, "Pause"),
        (11.5, "MoveCoordinator"),
    ]


def test_together_is_one_moment_and_each_part_has_its_own_draw():
    found = steps(together(7, PAUSE, PAUSE))
    assert [step.at_s for step in found] == [7, 7]
    assert len({step.pick for step in found}) == 2


def test_a_mix_chooses_by_weight_every_so_often():
    found = told(mix(1, PAUSE, MOVE, sequence(0, KILL, KILL), weights=(1, 3, 0), until_s=400))
    counts = Counter(name for _, name in found)
    assert counts.total() == 400
    assert 250 < counts["MoveCoordinator"] < 350
    assert counts["Kill"] == 0


def test_a_repeated_sequence_is_a_mix_of_one():
    found = told(mix(20, sequence(0, PAUSE, MOVE, pause_s=1), at_s=0, until_s=40))
    pauses, moves = ([at_s for at_s, name in found if name == kind] for kind in ("Pause", "MoveCoordinator"))
    assert len(pauses) == len(moves) == 3
    assert [round(move - pause, 3) for pause, move in zip(pauses, moves, strict=True)] == [3, 3, 3]


def test_a_rolling_deploy_replaces_every_member_stop_first_or_start_first():
    found = steps(rolling_deploy(5, pause_s=2, down_s=3))
    assert [(step.at_s, type(step.fault).__name__, step.target, step.heal_after_s) for step in found] == [
        (5, "Bounce", member(0), 3),
        (10, "Bounce", member(1), 3),
        (15, "Bounce", member(2), 3),
    ]
    spare = {**vars(SCENARIO), "group": Group(members=2, spare=1)}
    found = Scenario(**{**spare, "schedule": [rolling_deploy(5, start_first=True, pause_s=2)]}).plan(1).steps
    assert [(step.at_s, type(step.fault).__name__, step.target) for step in found] == [
        (5, "ScaleOut", idle()),
        (5, "ScaleIn", member(0)),
        (7, "ScaleOut", idle()),
        (7, "ScaleIn", member(1)),
    ]
    assert all(step.fault.joined_within_s > 0 for step in found[::2])
    with pytest.raises(PlanError, match=r"idle\(1\) needs 1 spare members, the group has 0"):
        steps(rolling_deploy(5, start_first=True))


def test_a_rolling_bounce_takes_one_broker_after_the_other_and_gives_nothing_up():
    found = steps(rolling_bounce(5, down_s=2))
    assert [(step.at_s, step.fault, step.target, step.heal_after_s) for step in found] == [
        (5, Bounce(in_sync=True), brokers([1]), 2),
        (12, Bounce(in_sync=True), brokers([2]), 2),
        (19, Bounce(in_sync=True), brokers([3]), 2),
    ]
    assert lost_guarantees(found, SCENARIO.inventory()) == []
    with pytest.raises(PlanError, match=r"found a rolling bounce that lasts -1 s"):
        rolling_bounce(5, pause_s=-1)
    with pytest.raises(PlanError, match="hit"):
        steps(at(1, Bounce(in_sync=True), one_member()))


def test_flapping_is_regular_and_hits_the_same_again():
    found = steps(flap(2, Refuse(), one_member(), at_s=10, until_s=16))
    assert [(step.at_s, step.heal_after_s) for step in found] == [(10, 1), (12, 1), (14, 1), (16, 1)]
    assert len({step.pick for step in found}) == 1
    assert [step.heal_after_s for step in steps(flap(2, CutConnections(), one_member(), until_s=4))] == [None, None]


def test_nothing_begins_or_is_in_effect_in_a_quiet_span():
    early, late = at(3, Pause(), one_member(), heal_after=2), at(20, MoveCoordinator())
    over, inside = at(7, Pause(), one_member(), heal_after=20), at(12, MoveCoordinator())
    ends_in_it = at(8, Pause(), one_member(), heal_after=2)
    assert told(early, over, ends_in_it, inside, quiet(10, 20), late) == [(3, "Pause"), (20, "MoveCoordinator")]


FAULTS = st.sampled_from(
    [
        PAUSE,
        KILL,
        MOVE,
        at(1.5, BlackHole(direction="to"), coordinator(), heal_after=1, required=False),
        every(3, Pause(), one_member(), until_s=9, heal_after=1),
        flap(2, Refuse(), member(0), until_s=6),
    ]
)
SWARMS = st.builds(
    lambda intensity, begin_s, lasts_s, survivable: swarm(
        intensity, at_s=begin_s, until_s=begin_s + lasts_s, survivable=survivable
    ),
    st.sampled_from([6, 20]),
    st.sampled_from([0, 2.5]),
    st.sampled_from([30, 55.5]),
    st.booleans(),
)


def combined(inner: st.SearchStrategy[Entry]) -> st.SearchStrategy[Entry]:
    parts, seconds = st.lists(inner, min_size=1, max_size=3), st.sampled_from([0, 1, 7.25])
    return st.one_of(
        st.builds(lambda s, p, pause_s: sequence(s, *p, pause_s=pause_s), seconds, parts, seconds),
        st.builds(lambda s, p: together(s, *p), seconds, parts),
        st.builds(lambda p: mix(10, *p, weights=range(1, len(p) + 1), until_s=30), parts),
    )


ENTRIES = st.recursive(FAULTS | SWARMS, combined, max_leaves=4)
QUIETS = st.builds(lambda begin_s, lasts_s: quiet(begin_s, begin_s + lasts_s), st.integers(0, 40), st.integers(1, 15))
SCHEDULES = st.lists(ENTRIES | QUIETS, max_size=4)


@given(schedule=SCHEDULES, seed=st.integers(0, 9))
def test_any_schedule_makes_one_plan_that_can_be_performed_and_survives_json(schedule: Any, seed: int) -> None:
    made = scenario(*schedule)
    plan = made.plan(seed)
    assert plan == made.checked(plan) == scenario(*schedule).plan(seed)
    again = Scenario.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert again.plan(seed) == plan
    spans = [line for line in schedule if isinstance(line, Quiet)]
    assert all(step.end_s < q.from_s or step.at_s >= q.until_s for step in plan.steps for q in spans)


@given(schedule=st.lists(ENTRIES, min_size=1, max_size=3), seed=st.integers(0, 9), data=st.data())
def test_the_draws_of_an_entry_do_not_depend_on_the_others(schedule: Any, seed: int, data: Any) -> None:
    gone = data.draw(st.integers(0, len(schedule) - 1))
    rest = [*schedule[:gone], *schedule[gone + 1 :]]
    assert drawn(*rest, seed=seed) <= drawn(*schedule, seed=seed)
    assert sum((drawn(entry, seed=seed) for entry in set(schedule)), Counter()) <= drawn(*schedule, seed=seed)


@given(schedule=st.lists(ENTRIES, max_size=3), span=QUIETS, seed=st.integers(0, 9))
def test_a_quiet_span_leaves_all_other_steps_as_they_were(schedule: Any, span: Quiet, seed: int) -> None:
    kept = Counter(step for step in drawn(*schedule, seed=seed).elements() if span.allows(step))
    assert drawn(span, *schedule, seed=seed) == kept


TOML = """
name = "in a file"
topics = [{ name = "orders" }]
group = { members = 3, config = { "session.timeout.ms" = 6000 } }
chaos_s = 300
[[schedule]]
type = "sequence"
at = 5
pause_s = 2
parts = [
    { fault = "pause", target = "one_member", heal_after = { past_session = 1.5 }, expect = "fenced" },
    { type = "together", parts = [{ fault = "move_coordinator" }, { at = 1, fault = "kill", target = "one_member" }] },
]
[[schedule]]
type = "mix"
every = 10
until_s = 60
weights = [3, 1]
parts = [{ fault = "pause", target = "one_member" }, { fault = "move_coordinator" }]
[[schedule]]
every = 2
until_s = 70
at = 62
regular = true
fault = "refuse"
target = { type = "member", index = 1 }
[[schedule]]
type = "quiet"
from_s = 80
until_s = 100
[[schedule]]
type = "swarm"
intensity = 10
at = 70
until_s = 140
parts = [{ fault = "kill", required = false }, { fault = "pause", target = "coordinator", heal_after = 2 }]
"""


def test_all_of_it_is_read_from_toml(tmp_path):
    (tmp_path / "all.toml").write_text(TOML)
    assert loader.load(tmp_path / "all.toml").schedule == (
        sequence(
            5,
            at(0, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
            together(0, at(0, MoveCoordinator()), at(1, Kill(), one_member())),
            pause_s=2,
        ),
        mix(10, at(0, Pause(), one_member()), at(0, MoveCoordinator()), weights=(3, 1), until_s=60),
        flap(2, Refuse(), member(1), at_s=62, until_s=70),
        quiet(80, 100),
        swarm(
            10,
            at(0, Kill(), required=False),
            at(0, Pause(), coordinator(), heal_after=2),
            at_s=70,
            until_s=140,
        ),
    )


STEP = {"fault": "move_coordinator"}
DEEP: dict[str, Any] = STEP
for _ in range(12):
    DEEP = {"type": "together", "parts": [DEEP]}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            {"type": "sequnce"},
            "no schedule entry 'sequnce'; known are mix, quiet, rolling_bounce, rolling_deploy, sequence",
        ),
        ({"type": 5}, "a schedule entry needs its type; known are"),
        (
            {"at": 1},
            r"needs a fault, or a type \(mix, quiet, rolling_bounce, rolling_deploy, sequence, swarm, together\)",
        ),
        ({"type": "sequence", "parts": [STEP], "pause": 2}, "no option 'pause'; it has parts, at_s, pause_s"),
        ({"type": "sequence"}, "schedule entry sequence needs the option 'parts'"),
        ({"type": "sequence", "parts": STEP}, "sequence: parts must be a list"),
        ({"type": "sequence", "parts": []}, "found a sequence without parts"),
        ({"type": "together", "parts": [{"target": "one_member"}]}, "needs a fault"),
        ({"type": "together", "parts": [{**STEP, "until": 3}]}, "has no option 'until'; it has at_s, fault, target"),
        (
            {"type": "together", "parts": [{"type": "quiet", "from_s": 1, "until_s": 2}]},
            "the type Entry, but found Quiet",
        ),
        ({"type": "mix", "parts": [STEP], "until_s": 9}, "schedule entry mix needs the option 'at_s'"),
        (
            {"type": "mix", "every": 2, "parts": [STEP], "until_s": 9, "weights": [1, 2]},
            r"found a mix of 1 parts with the weights \(1, 2\); use 1 weights",
        ),
        ({"type": "quiet", "from_s": 5}, "schedule entry quiet needs the option 'until_s'"),
        ({"type": "quiet", "from_s": 5, "until_s": 6, "parts": []}, "has no option 'parts'; it has from_s, until_s"),
        ({"type": "swarm", "intensity": "high", "until_s": 6}, "intensity must be a number, but found 'high'"),
        (
            {"type": "swarm", "intensity": 1, "until_s": 60, "parts": [{"type": "together", "parts": [STEP]}]},
            "type ScheduledFault",
        ),
        (DEEP, "nested more than 10 deep"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_a_sentence(line: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        Scenario.from_json({**SCENARIO.to_json(), "schedule": [line]})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: sequence(5), "found a sequence without parts"),
        (lambda: together(5), "found a together without parts"),
        (lambda: mix(5, until_s=9), "found a mix without parts"),
        (lambda: sequence(5, PAUSE, pause_s=-1), "found a sequence with pause_s=-1"),
        (lambda: mix(5, PAUSE, MOVE, until_s=9, weights=(1, -1)), "use 2 weights of 0 or more"),
        (lambda: mix(5, PAUSE, MOVE, until_s=9, weights=(0, 0)), "not all 0"),
        (lambda: quiet(5, 5), r"found quiet\(5, 5\); use a beginning of 0 or more"),
        (lambda: quiet(-1, 5), r"found quiet\(-1, 5\); use a beginning of 0 or more"),
        (lambda: together(1, quiet(1, 2)), "must be a value of the type Entry, but found Quiet"),
        (lambda: steps(sequence(-1, PAUSE)), "1 s before the group is warm"),
        (lambda: steps(together(4, at(-1, MoveCoordinator()))), "1 s before the group is warm"),
        (lambda: steps(mix(5, PAUSE, until_s=4)), "never fires"),
        (lambda: steps(flap(0, Pause(), one_member(), until_s=4)), "never"),
        (
            lambda: steps(flap(2, Pause(), one_member(), until_s=4, heal_after=2)),
            "would never be off: it is on for 2 s",
        ),
        (lambda: steps(mix(0.1, mix(0.1, MOVE, until_s=20), until_s=20)), "fires more than 10000 times"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(PlanError if "type" not in sentence else ScenarioError, match=sentence):
        make()


def test_what_entries_hold_need_not_be_named_to_be_equal():
    assert sequence(5, PAUSE, pause_s=1) == Sequence([PAUSE], 5, 1)  # type: ignore[arg-type]
    assert together(5, PAUSE) == Together((PAUSE,), 5)
    assert mix(5, PAUSE, until_s=9) == Mix((PAUSE,), 5, 5, 9)
    assert swarm(5, until_s=9) == Swarm(5, 9)
    assert make_plan([every(8, Pause(), all_members(), until_s=40)], 1, {SESSION: 6.0}).steps
    assert brokers((1,)) == brokers([1])  # type: ignore[arg-type]
