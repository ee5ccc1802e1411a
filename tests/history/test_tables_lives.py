"""What events come to: phases, steps, lives, intervals and commits, event by event and field by field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencepost.checkers.tables import event_rows
from fencepost.checkers.tables.rows import FOREVER, Commit, Interval, Life, PerformedStep, UnmatchedRevocation, Window
from fencepost.history import EventKind
from fencepost.history import events as from_events
from fencepost.model.impact import Impact

A, B = "member-0.1", "member-1.1"
NUMBERS = {("orders", 0): 0, ("orders", 1): 1, ("", 4): 4}
EMPTY = dict.fromkeys(("topic", "partition", "offset", "generation", "member_id", "outcome", "error"))


def event(kind: str, actor: str = A, begin_ns: int = 5, end_ns: int = 0, **more: Any) -> dict[str, Any]:
    """``more``: columns, and ``tp`` for a partition of the topic; what is no column is a field of the detail."""
    if "tp" in more:
        more |= {"topic": "orders", "partition": more.pop("tp")}
    columns = {name: more.pop(name) for name in EMPTY if name in more}
    return {"kind": kind, "actor": actor, "begin_ns": begin_ns, "end_ns": end_ns, **EMPTY, **columns, "detail": more}


# Phases and steps.


def test_a_phase_has_the_time_of_its_event() -> None:
    events = [event("phase", name="warm-up", end_ns=9), event("fault", name="x"), event("phase", begin_ns=9)]
    assert from_events.phases(events) == {"warm-up": Window(5, 9), "None": Window(9, 0)}


@pytest.mark.parametrize(
    ("windows", "phase"),
    [
        ({}, ""),
        ({"a": Window(1, 2)}, ""),
        ({"a": Window(1, 2), "b": Window(2, 0)}, "b"),
        ({"a": Window(3, 0), "b": Window(2, 0), "c": Window(1, 1)}, "b"),
    ],
)
def test_a_run_was_broken_off_in_the_first_phase_without_an_end(windows: dict[str, Window], phase: str) -> None:
    assert event_rows.broken_off(windows) == phase


PLANNED = [
    ({"step": 3, "fault": {"type": "kill"}}, PerformedStep(3, "kill")),
    ({"fault": {"type": "kill"}}, PerformedStep(0, "kill")),
    ({"step": 3}, PerformedStep(3, "")),
    ({"step": 3, "fault": None}, PerformedStep(3, "")),
    ({"step": 3, "fault": {}}, PerformedStep(3, "")),
    ({"step": 3, "expect": "fenced", "required": False}, PerformedStep(3, "", expect="fenced", required=False)),
    ({"step": 3, "expect": None, "required": 1}, PerformedStep(3, "")),
    ({"step": 3, "heal_after_s": 0}, PerformedStep(3, "", heals=True)),
    ({"step": 3, "heal_after_s": None}, PerformedStep(3, "")),
]


@pytest.mark.parametrize(("entry", "step"), PLANNED)
def test_a_step_of_the_plan_without_events_never_fired(entry: dict[str, Any], step: PerformedStep) -> None:
    (found,) = from_events.steps([event("launched", step=3)], [entry])
    assert found == step
    assert type(found.required) is bool


PROOF = {"took_effect": True, "at_ns": 7, "what": "it stopped"}
FREEZES = frozenset({Impact.FREEZES, Impact.DELAYS})
BEGUN, HEALED = PerformedStep(3, "pause", begun_ns=5, impact=FREEZES), PerformedStep(3, "pause", undone_ns=5)
FIRED = [
    ("fault", {}, BEGUN),
    ("fault", {"evidence": PROOF}, replace(BEGUN, proven_ns=7, evidence="it stopped")),
    ("fault", {"evidence": {**PROOF, "at_ns": None}}, replace(BEGUN, proven_ns=9, evidence="it stopped")),
    ("fault", {"evidence": {"took_effect": True, "what": None}}, replace(BEGUN, proven_ns=9)),
    ("fault", {"evidence": {**PROOF, "took_effect": False}}, replace(BEGUN, evidence="it stopped")),
    ("fault", {"evidence": {"at_ns": 7}}, BEGUN),
    ("fault", {"evidence": None, "target": None, "members": None, "brokers": None, "expect": None}, BEGUN),
    ("fault", {"target": "member-0"}, replace(BEGUN, target="member-0")),
    ("fault", {"members": [A], "brokers": [1, 2]}, replace(BEGUN, members=(A,), brokers=(1, 2))),
    ("fault", {"expect": "fenced"}, replace(BEGUN, expect="fenced")),
    ("fault", {"impact": ["ends", 7]}, replace(BEGUN, impact=frozenset({Impact.ENDS, "7"}))),
    ("fault", {"impact": []}, replace(BEGUN, impact=frozenset())),
    ("fault", {"impact": None}, replace(BEGUN, impact=frozenset())),
    ("healed", {"evidence": PROOF, "members": [A]}, replace(HEALED, healed_ns=7, heal_evidence="it stopped")),
    ("healed", {}, HEALED),
    ("skipped", {"reason": "nobody there", "members": [A]}, PerformedStep(3, "pause", skipped="nobody there")),
    ("skipped", {"reason": None}, PerformedStep(3, "pause", skipped="nothing matched its target")),
    ("skipped", {}, PerformedStep(3, "pause", skipped="nothing matched its target")),
    ("launched", {}, PerformedStep(3, "pause")),
]


@pytest.mark.parametrize(("kind", "detail", "step"), FIRED)
def test_a_step_is_what_its_event_says(kind: str, detail: dict[str, Any], step: PerformedStep) -> None:
    reported = event(kind, "harness", 5, 9, step=3, fault="other", **detail)
    assert from_events.steps([reported], [{"step": 3, "fault": {"type": "pause"}}]) == (step,)


def test_a_step_keeps_what_the_plan_expects_unless_its_event_says_otherwise() -> None:
    plan = [{"step": 0, "fault": {"type": "pause"}, "expect": "fenced"}]
    for said, expect in ((None, "fenced"), ("survives", "survives")):
        (step,) = from_events.steps([event("fault", step=0, expect=said)], plan)
        assert step.expect == expect


def test_steps_are_in_the_order_of_their_numbers_and_those_without_a_plan_are_kept() -> None:
    events = [event("skipped", step=9, fault="kill"), event("launched"), event("healed", step=1)]
    events += [event("fault", begin_ns=6, fault="stop")]
    plan = [{"step": 2, "fault": {"type": "cut"}}, {"fault": {"type": "pause"}}]
    assert [(s.step, s.fault, s.begun_ns, s.undone_ns) for s in from_events.steps(events, plan)] == [
        *((-1, "stop", 6, 0), (1, "pause", 0, 5), (2, "cut", 0, 0), (9, "kill", 0, 0))
    ]
    (unnamed,) = from_events.steps([event("fault", step=4)], [])
    assert (unnamed.step, unnamed.fault) == (4, "")


# Lives.


BORN = Life(A, 0, started_ns=5)
SIGNED = replace(BORN, last_sign_ns=5)
SIGNS: list[tuple[str, dict[str, Any], Life]] = [
    ("started", {}, SIGNED),
    ("started", {"end_ns": 8}, replace(BORN, last_sign_ns=8)),
    ("launched", {}, BORN),
    ("started", {"slot": 4, "member": 7}, replace(SIGNED, slot=4, member=7)),
    ("launched", {"slot": 0, "member": 0, "instance_id": "one"}, replace(BORN, slot=0, instance_id="one")),
    ("launched", {"instance_id": None}, BORN),
    ("error", {"fatal": True, "error": "FENCED"}, Life(A, 0, fatal="FENCED", last_sign_ns=5)),
    ("error", {"fatal": True}, Life(A, 0, fatal="unknown", last_sign_ns=5)),
    ("error", {"fatal": False, "error": "FENCED"}, Life(A, 0, last_sign_ns=5)),
    ("error", {"error": "FENCED"}, Life(A, 0, last_sign_ns=5)),
    ("commit", {"fatal": True, "error": "FENCED"}, Life(A, 0, last_sign_ns=5)),
    ("poll-gap", {"end_ns": 8}, Life(A, 0, unpolled=(Window(5, 8),), last_sign_ns=8)),
    ("stall", {"end_ns": 8}, Life(A, 0, last_sign_ns=8)),
    ("subscribed", {"end_ns": 8}, Life(A, 0, subscribed=(Window(5, 8),), last_sign_ns=8)),
    ("subscribed", {"end_ns": 0}, Life(A, 0, subscribed=(Window(5, 5),), last_sign_ns=5)),
    ("assigned", {}, Life(A, 0, last_sign_ns=5)),
    ("revoked", {"end_ns": 4}, Life(A, 0, last_sign_ns=5)),
    ("lost", {}, Life(A, 0, last_sign_ns=5)),
    ("seek", {}, Life(A, 0, last_sign_ns=5)),
    ("closed", {}, Life(A, 0, last_sign_ns=5, closed_ns=5)),
    ("ended", {"how": "killed", "exit_code": -9}, Life(A, 0, ended_ns=5, how="killed", signal="SIGKILL")),
    ("ended", {"end_ns": 8, "how": None}, Life(A, 0, ended_ns=8, how="crashed")),
    ("ended", {"polled_ns": None, "exit_code": 0}, Life(A, 0, ended_ns=5, how="crashed")),
    ("ended", {"polled_ns": 2, "exit_code": None}, Life(A, 0, ended_ns=5, how="crashed", unpolled=(Window(2, 5),))),
    ("ended", {"polled_ns": 0, "end_ns": 8}, Life(A, 0, ended_ns=8, how="crashed")),
    ("ended", {"polled_ns": 1, "end_ns": 8}, Life(A, 0, ended_ns=8, how="crashed", unpolled=(Window(1, 8),))),
]


@pytest.mark.parametrize(("kind", "said", "life"), SIGNS)
def test_a_life_is_what_its_events_say(kind: str, said: dict[str, Any], life: Life) -> None:
    other = event("launched", B, 1, slot=1)
    assert from_events.lives([event("phase", A), event(kind, **said), event("act"), other], ()) == {
        A: life,
        B: Life(B, 1, 1, started_ns=1),
    }


def test_a_life_keeps_what_was_told_before() -> None:
    reported: list[tuple[str, dict[str, Any]]] = [
        ("launched", {"begin_ns": 4, "slot": 2, "member": 3, "instance_id": "one"}),
        ("started", {"begin_ns": 3}),
        ("started", {"begin_ns": 9}),
        ("poll-gap", {"begin_ns": 10, "end_ns": 14}),
        ("error", {"begin_ns": 15, "fatal": True, "error": "FIRST"}),
        ("poll-gap", {"begin_ns": 11, "end_ns": 12}),
        ("error", {"begin_ns": 13, "fatal": True, "error": "SECOND"}),
        ("ended", {"begin_ns": 20, "polled_ns": 14}),
    ]
    assert from_events.lives([event(kind, **said) for kind, said in reported], ()) == {
        A: Life(A, 3, 2, 3, 20, "crashed", 15, (), "one", "FIRST", "", (Window(10, 14), Window(11, 12), Window(14, 20)))
    }


def test_producers_and_the_harness_are_no_members() -> None:
    names = ("started", "commit", "closed", "ended")
    of_producer = [
        event(kind, "producer-0", writer=0) if kind == "started" else event(kind, "producer-0") for kind in names
    ]
    assert from_events.lives([*of_producer, event("phase", "harness"), event("started")], ()) == {A: SIGNED}
    assert from_events.lives([event("launched", "producer-0"), *of_producer], ()) == {}


@pytest.mark.parametrize(
    ("exit_code", "signal"), [(-15, "SIGTERM"), (-1, "SIGHUP"), (0, ""), (1, ""), (None, ""), (-200, "signal 200")]
)
def test_a_process_ends_by_a_signal_when_its_exit_code_is_negative(exit_code: int | None, signal: str) -> None:
    assert from_events.lives([event("ended", exit_code=exit_code)], ())[A].signal == signal


OF_SEVERAL = [("member-2b.1", 2), ("member-2.1-3", 2), ("member-12z.10-31", 12)]


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("member-2.1", 2),
        ("a-b-13.4", 13),
        ("7.1", 7),
        ("x.y-3.1", 3),
        ("ghost", -1),
        ("m-x.1", -1),
        ("m-4.1.2", 4),
        *OF_SEVERAL,
    ],
)
def test_a_life_is_of_the_member_that_it_is_named_after(name: str, member: int) -> None:
    assert from_events.lives([event("closed", name)], ())[name].member == member


PAUSE = PerformedStep(0, "mine", members=(A, B), proven_ns=10, undone_ns=20, impact=frozenset({Impact.FREEZES}))


@pytest.mark.parametrize(
    ("steps", "paused", "of_the_other"),
    [
        ([PAUSE], [(10, 20)], [(10, 20)]),
        ([replace(PAUSE, undone_ns=0)], [(10, 30)], [(10, FOREVER)]),
        ([PAUSE, replace(PAUSE, proven_ns=22, undone_ns=25)], [(10, 20), (22, 25)], [(10, 20), (22, 25)]),
        (
            [replace(PAUSE, proven_ns=0), replace(PAUSE, impact=frozenset({Impact.DELAYS, Impact.ENDS})), PAUSE],
            [(10, 20)],
            [(10, 20)],
        ),
        ([replace(PAUSE, members=(A,))], [(10, 20)], None),
    ],
)
def test_a_life_is_paused_from_the_proof_to_the_undo_or_to_its_end(
    steps: list[PerformedStep], paused: list[tuple[int, int]], of_the_other: list[tuple[int, int]] | None
) -> None:
    """Of the other one the steps alone speak."""
    life = Life(A, 0, ended_ns=30, how="crashed", paused=tuple(Window(*of) for of in paused))
    other = {} if of_the_other is None else {B: Life(B, 1, paused=tuple(Window(*of) for of in of_the_other))}
    assert from_events.lives([event("ended", begin_ns=30)], steps) == {A: life, **other}


@pytest.mark.parametrize(
    ("reported", "protocols"),
    [
        ([], set()),
        (["eager"], {"eager"}),
        (["eager", "eager", "consumer"], {"eager", "consumer"}),
        ([None, "", "consumer"], {"consumer"}),
    ],
)
def test_a_group_has_the_protocols_that_its_members_started_with(reported: list[Any], protocols: set[str]) -> None:
    events = [event("started", member=0, protocol=protocol) for protocol in reported]
    others = [
        event("started", writer=5, protocol="x"),
        event("error", member=0, protocol="y"),
        event("started", member=1),
    ]
    assert event_rows.protocols([*others, *events]) == protocols


@pytest.mark.parametrize(
    ("config", "guarded"),
    [
        ({"enable.idempotence": True}, True),
        ({"enable.idempotence": "TRUE"}, True),
        ({"enable.idempotence": "no"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_writer_is_unguarded_unless_its_settings_say_that_it_is_idempotent(config: Any, guarded: bool) -> None:
    events = [event("started", writer=3, config=config), event("launched", writer=4), event("started", config={})]
    assert event_rows.unguarded(events) == (frozenset() if guarded else {3})
    assert event_rows.unguarded([event("started", writer=5)]) == {5}


# Intervals.


def at(kind: str, begin_ns: int, end_ns: int = 0, tp: int = 0, **more: Any) -> dict[str, Any]:
    return event(kind, begin_ns=begin_ns, end_ns=end_ns, tp=tp, **more)


FIRST = Interval(0, A, 0, -1, "", 5, 6)
DEAD = Life(A, ended_ns=50, last_sign_ns=40)
ALIVE = Life(A, last_sign_ns=40)
OPEN = FIRST._replace(given_up_begin_ns=40)
DIED = FIRST._replace(given_up_begin_ns=40, given_up_end_ns=50, how="died")


def over(how: str, begin_ns: int, end_ns: int, first: Interval = FIRST) -> Interval:
    return first._replace(how=how, given_up_begin_ns=begin_ns, given_up_end_ns=end_ns)


@pytest.mark.parametrize(
    ("events", "life", "expected"),
    [
        ([], ALIVE, [OPEN]),
        ([], DEAD, [DIED]),
        ([], None, [over("", 5, 0)]),
        ([], replace(ALIVE, last_sign_ns=3), [over("", 5, 0)]),
        ([at("revoked", 8, 9)], ALIVE, [over("revoked", 8, 9)]),
        ([at("lost", 8, 9)], DEAD, [over("lost", 8, 9)]),
        ([at("revoked", 8)], DEAD, [over("died", 8, 50)]),
        ([at("lost", 8)], ALIVE, [over("died", 8, FOREVER)]),
        ([at("lost", 8)], None, [over("died", 8, FOREVER)]),
        ([at("revoked", 8, 9), at("lost", 10, 11)], DEAD, [over("revoked", 8, 9)]),
        ([at("revoked", 8, 9, tp=1)], DEAD, [DIED]),
        ([at("revoked", 8, 9, tp=7)], DEAD, [DIED]),
        ([at("revoked", 7, 8, tp=7), at("revoked", 8, 9)], DEAD, [over("revoked", 8, 9)]),
        ([at("commit", 8, 9)], DEAD, [DIED]),
        ([event("revoked", B, 8, 9, tp=0)], DEAD, [DIED]),
        ([event("closed", begin_ns=8, end_ns=9)], DEAD, [over("closed", 8, 9)]),
        ([event("closed", begin_ns=8)], DEAD, [over("closed", 8, 50)]),
        ([event("closed", begin_ns=8)], ALIVE, [over("closed", 8, FOREVER)]),
        ([event("closed", B, begin_ns=8, end_ns=9)], DEAD, [DIED]),
        (
            [at("assigned", 8, 9, generation=4, member_id="x")],
            DEAD,
            [over("reassigned", 8, 8), over("died", 40, 50, Interval(0, A, 1, 4, "x", 8, 9))],
        ),
        (
            [at("revoked", 8, 9), at("assigned", 10, 11)],
            DEAD,
            [over("revoked", 8, 9), over("died", 40, 50, Interval(0, A, 1, -1, "", 10, 11))],
        ),
        (
            [at("assigned", 7, 8, tp=1, generation=0), event("closed", begin_ns=9, end_ns=10)],
            DEAD,
            [over("closed", 9, 10), over("closed", 9, 10, Interval(1, A, 0, 0, "", 7, 8))],
        ),
        (
            [event("assigned", B, 4, 4, tp=0)],
            DEAD,
            [over("", 4, 0, Interval(0, B, 0, -1, "", 4, 4)), DIED],
        ),
        (
            [event("assigned", "a", 5, 6, tp=0), event("assigned", B, 5, 6, tp=0)],
            DEAD,
            [over("", 5, 0, FIRST._replace(incarnation="a")), DIED, over("", 5, 0, FIRST._replace(incarnation=B))],
        ),
    ],
)
def test_an_interval_ends_by_whatever_ends_it(
    events: list[dict[str, Any]], life: Life | None, expected: list[Interval]
) -> None:
    known = {A: life} if life else {}
    assert from_events.intervals([at("assigned", 5, 6), *events], known, NUMBERS) == tuple(expected)


def test_intervals_of_a_life_are_counted_by_partition() -> None:
    events = [at("assigned", begin_ns, tp=tp) for begin_ns, tp in ((1, 0), (2, 0), (3, 1), (4, 0))]
    assert [(i.tp, i.number) for i in from_events.intervals(events, {}, NUMBERS)] == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_a_callback_without_a_topic_or_partition_is_of_none_that_is_known() -> None:
    numbers = {("", -1): 3, **NUMBERS}
    strange = [event("assigned", partition=4), event("assigned", topic="orders")]
    assert [i.tp for i in from_events.intervals(strange, {}, NUMBERS)] == [4]
    assert [i.tp for i in from_events.intervals([event("assigned")], {}, numbers)] == [3]


@pytest.mark.parametrize(
    ("reported", "strays"),
    [
        (at("revoked", 8, 9), []),
        (at("lost", 8, 9), []),
        (at("revoked", 7, 9), [UnmatchedRevocation(0, A, Window(7, 9))]),
        (at("lost", 7), [UnmatchedRevocation(0, A, Window(7, 7))]),
        (at("revoked", 8, 9, tp=1), [UnmatchedRevocation(1, A, Window(8, 9))]),
        (event("lost", B, 8, 9, tp=0), [UnmatchedRevocation(0, B, Window(8, 9))]),
        (at("revoked", 7, 9, tp=9), []),
        (at("assigned", 7, 9), []),
        (at("commit", 7, 9), []),
    ],
)
def test_a_callback_is_stray_when_no_interval_ended_by_it(
    reported: dict[str, Any], strays: list[UnmatchedRevocation]
) -> None:
    known = [over("revoked", 8, 9)]
    assert event_rows.strays([reported], known, NUMBERS) == tuple(strays)


def test_strays_are_told_those_of_revoked_callbacks_first() -> None:
    events = [at("lost", 7, 8), at("revoked", 9, 10)]
    assert [s.window.begin_ns for s in event_rows.strays(events, [], NUMBERS)] == [9, 7]


# Commits, and where events are.

COMMIT = Commit(0, 3, A, "x", 4, 5, 6, "ok", "", "sync")
TOLD = {"end_ns": 6, "tp": 0, "offset": 3, "member_id": "x", "generation": 4, "outcome": "ok", "mode": "sync"}


@pytest.mark.parametrize(
    ("said", "commit"),
    [
        ({}, COMMIT),
        ({"offset": None}, COMMIT._replace(offset=-1)),
        ({"offset": 0, "generation": 0}, COMMIT._replace(offset=0, generation=0)),
        ({"generation": None}, COMMIT._replace(generation=-1)),
        ({"member_id": None}, COMMIT._replace(member_id="")),
        ({"outcome": None}, COMMIT._replace(outcome="info")),
        ({"end_ns": 0}, COMMIT._replace(end_ns=0, outcome="info")),
        ({"outcome": "fail", "error": "FENCED"}, COMMIT._replace(outcome="fail", error="FENCED")),
        ({"mode": None}, COMMIT._replace(mode="")),
        ({"tp": 1}, COMMIT._replace(tp=1)),
        ({"tp": 9}, None),
    ],
)
def test_a_commit_is_what_its_event_says(said: dict[str, Any], commit: Commit | None) -> None:
    events = [event("commit", **{**TOLD, **said}), event("seek", **TOLD)]
    assert event_rows.commits(events, NUMBERS) == ((commit,) if commit else ())
    del (without_mode := dict(TOLD))["mode"]
    assert event_rows.commits([event("commit", **without_mode)], NUMBERS) == (COMMIT._replace(mode=""),)


def test_events_of_no_known_partition_are_left_out_unless_they_may_be_anywhere() -> None:
    events = [event("act", tp=1), event("act"), event("act", partition=4), event("act", tp=9), event("seek", tp=0)]
    assert [tp for _, tp in from_events.placed(events, NUMBERS, EventKind.ACT)] == [1, 4]
    found = from_events.placed(events, NUMBERS, EventKind.ACT, anywhere=True)
    assert found == list(zip(events[:4], [1, None, 4, None], strict=True))
