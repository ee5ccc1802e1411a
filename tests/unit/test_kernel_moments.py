"""Rules of the kernel that compare moments, on rows written here: each edge on either side, to the nanosecond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from small_parts import owned, rows

from fencepost.checkers.coordination.members import Hand, Work
from fencepost.checkers.kernel import members, repeats, stuck
from fencepost.checkers.kernel.before import Before, heights
from fencepost.checkers.kernel.effects import _hopeless, _lacking, per_entity_order, requeued_and_done
from fencepost.checkers.kernel.keys import _early
from fencepost.checkers.kernel.part import NEVER, Part
from fencepost.checkers.kernel.places import Places
from fencepost.checkers.kernel.tallies import Label, Numbers, Tallies
from fencepost.checkers.kernel.times import Span, _spans, meetings
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.effects import LETTER_NS, Effect, by_tp
from fencepost.checkers.tables.rows import Window
from fencepost.checkers.tables.seeks import Seek
from fencepost.history import State

BOUND = 10
BOUNDS = SimpleNamespace(stuck_ns=BOUND, recovers_ns=2 * BOUND)


NOTHING_ELSE: dict[str, Any] = {
    "black_box": False,
    "by_effect": False,
    "paused_by": lambda *_: False,
    "forked": lambda _: False,
    "deaf_keeper": lambda *_: "",
}


def part(**more: Any) -> Any:
    return SimpleNamespace(tp=3, tallies=Tallies(), **more)


NOBODY = SimpleNamespace(done=lambda offsets: {})  # was done with any record that has a letter

# What members did in the times without a poll.


def unpolled(*work: tuple[int, int, int]) -> Tallies:
    """Of ``b``, between 100 and 200; work: an offset, when it was begun and done; others worked before it and after."""
    of = [(99, 150, 160), *work, (98, 140, 170)]
    offset, begin_ns, done_ns = zip(*of, strict=True)
    who = [0] + [1] * len(work) + [2]
    given = rows(("a", "b", "d"), who=who, offset=offset, begin_ns=begin_ns, done_ns=done_ns)
    judged = SimpleNamespace(unpolled=[("c", Window(0, 300)), ("b", Window(100, 200))], bounds=BOUNDS)
    found = part(rows=given, judged=judged, tables=SimpleNamespace(**NOTHING_ELSE))
    members.work_without_polls(cast("Part", found))
    return cast("Tallies", found.tallies)


def work(since_ns: int, until_ns: int) -> tuple[Any, Numbers]:
    return ("#work", 3, ("b",), "1", f"{since_ns}"), Numbers(1, -1, -1, since_ns, until_ns)


def hand(offset: int, since_ns: int, until_ns: int) -> tuple[Any, Numbers]:
    return ("#hand", 3, ("b",), "1", f"{since_ns} {until_ns}"), Numbers(1, offset, offset, since_ns, until_ns)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([(1, 0, 0)], []),
        ([(1, 101, 101)], [work(101, 101)]),
        ([(1, 199, 199)], [work(199, 199)]),
        ([(1, 100, 100), (2, 200, 200)], []),
        ([(1, 110, 120)], [work(110, 120)]),
        ([(1, 110, 121)], [work(110, 110), work(121, 121), hand(1, 110, 121)]),
        ([(1, 50, 100)], []),
        ([(1, 50, 101)], [work(101, 101), hand(1, 100, 101)]),
        ([(1, 190, 0)], [work(190, 190)]),
        ([(1, 189, 0)], [work(189, 189), hand(1, 189, 200)]),
        ([(1, 189, 300)], [work(189, 189), hand(1, 189, 200)]),
        ([(2, 50, 300), (1, 60, 0)], [hand(1, 100, 200)]),
        (
            [(5, 90, 150), (6, 120, 125), (7, 126, 0), (4, 80, 150), (3, 95, 0)],
            [work(120, 126), work(150, 150), hand(4, 100, 150), hand(3, 100, 200), hand(7, 126, 200)],
        ),
    ],
)
def test_work_in_a_time_without_polls_is_told_with_what_was_in_hand(
    given: Sequence[tuple[int, int, int]], told: Iterable[tuple[Any, Numbers]]
) -> None:
    found = unpolled(*given)
    assert {key: of for key, of in found.items() if key[0] == "#work"} == {k: n for k, n in told if k[0] == "#work"}
    assert {key: of for key, of in found.items() if key[0] == "#hand"} == {k: n for k, n in told if k[0] == "#hand"}


def test_what_tasks_told_of_each_time_without_polls_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Tallies()
    for tp, number, (key, numbers) in ((3, "0", work(1, 2)), (4, "2", work(3, 4)), (4, "0", hand(7, 5, 6))):
        told.put(key[0], tp, Label(("b",), number, key[4]), numbers)
    told.put("#span", 3, Label(("b",), "0"), Numbers(1, 8, 8, 9, 9))
    seen = []

    def stuck_members(times: Any, bound_ns: int, work_of: Any) -> Iterable[str]:
        seen.extend([times, bound_ns, *(work_of(number) for number in range(3))])
        return ["found"]

    monkeypatch.setattr(members, "stuck_members", stuck_members)
    judged = SimpleNamespace(unpolled=["the times"], bounds=BOUNDS)
    assert [*members.stuck_member_of(told, cast("Any", judged))] == ["found"]
    first = Work([Window(1, 2)], [Hand(Window(5, 6), 4, 7)])
    assert seen == [["the times"], BOUND, first, Work([], []), Work([Window(3, 4)], [])]


# Partitions that stand still.


def watch(first: bool = False) -> Any:
    return stuck._Watch("stuck-partition", Window(100, 200), BOUND, first=first)


@pytest.mark.parametrize(
    ("lots", "gaps"),
    [
        ([[]], [(100, 200)]),
        ([[110, 120], [130, 140, 150], [160, 170, 180, 190]], []),
        ([[111, 120, 130, 140, 150], [160, 170, 180, 189]], [(100, 111), (189, 200)]),
        ([[150, 110], [120, 199]], [(120, 150), (150, 199)]),
        ([[50, 250]], [(100, 200)]),
    ],
)
def test_gaps_are_longer_than_the_bound_and_lie_between_deliveries_of_all_lots(
    lots: Sequence[Sequence[int]], gaps: Sequence[tuple[int, int]]
) -> None:
    of = part(lots=[part(rows=rows(delivered_ns=moments)) for moments in lots])
    every, first = watch(), watch(first=True)
    edges = stuck._gaps(cast("Part", of), [every, first])
    assert [(gap.begin_ns, gap.end_ns) for gap in edges if gap.watch is every] == gaps
    begins = [gap for gap in gaps if gap[0] == 100]
    assert [(gap.begin_ns, gap.end_ns) for gap in edges if gap.watch is first] == begins


def lot(offsets: Sequence[int], acked_ns: Sequence[int], visible: Sequence[bool], *given: tuple[int, int]) -> Any:
    """Acknowledged sends, and what was delivered of them: (offset, when)."""
    offset, delivered_ns = zip(*given, strict=True) if given else ((), ())
    these = rows(offset=offset, delivered_ns=delivered_ns)
    places = Places([np.array(offsets, np.int64), these.offset])
    sent = {"offset": np.array(offsets, np.int64), "acked_ns": np.array(acked_ns, np.int64)}
    return part(places=places, rows=these, sent=[sent], sent_where=[places.where(0)], visible=np.array(visible, bool))


def stops(start: int, lots: Sequence[Any]) -> Any:
    """Of a gap from 100 to 200."""
    return stuck._stops(cast("Part", part(start=start, lots=lots)), [stuck._Gap(watch(), 100, 200)])[0]


@pytest.mark.parametrize(
    ("start", "lots", "stop"),
    [
        (0, [lot([5, 6], [50, 60], [True, True])], (5, 100)),
        (6, [lot([5, 6], [50, 60], [True, True])], (6, 100)),
        (7, [lot([5, 6], [50, 60], [True, True])], None),
        (0, [lot([5, 6], [50, 60], [True, True], (5, 100))], (6, 100)),
        (0, [lot([5, 6], [50, 60], [True, True], (5, 101))], (5, 100)),
        (0, [lot([5, 6], [50, 60], [True, True], (5, 90), (6, 20))], None),
        (0, [lot([5, 6], [50, 60], [False, True])], (6, 100)),
        (0, [lot([5, 6], [-1, 189], [True, True])], (6, 189)),
        (0, [lot([5, 6], [-1, 190], [True, True])], None),
        (0, [lot([5, 6], [150, 120], [True, True])], (5, 120)),
        (0, [lot([0, 1], [50, 60], [True, True], (0, 90)), lot([5, 6], [150, 140], [True, True])], (1, 100)),
        (0, [lot([0, 1], [50, 60], [True, True]), lot([5, 6], [150, 140], [True, True], (5, 90))], (6, 140)),
    ],
)
def test_what_waits_too_long_is_acknowledged_visible_and_above_all_that_was_delivered_before(
    start: int, lots: Sequence[Any], stop: tuple[int, int] | None
) -> None:
    assert stops(start, lots) == stop


def test_a_partition_is_watched_in_the_quiet_window_after_each_step_and_beside_one() -> None:
    windows = [Window(n, n + 100) for n in range(3)]
    judged = SimpleNamespace(
        bounds=BOUNDS, recoveries=[("step", windows[1])], bystanders={3: [("beside", "b", windows[2])], 4: [0]}
    )
    assert [*stuck._watches(part(judged=judged, tables=SimpleNamespace(quiet=windows[0])))] == [
        stuck._Watch("stuck-partition", windows[0], BOUND, False, None, None),
        stuck._Watch("slow-recovery", windows[1], 2 * BOUND, True, None, cast("Any", "step")),
        stuck._Watch("collateral-stall", windows[2], BOUND, False, "b", cast("Any", "beside")),
    ]
    judged.bystanders = {}
    assert len([*stuck._watches(part(judged=judged, tables=SimpleNamespace(quiet=windows[0])))]) == 2


@pytest.mark.parametrize(
    ("at_ns", "owner"),
    [(50, ""), (51, "b"), (60, "b"), (61, "a"), (70, "a"), (79, "a"), (80, "c"), (89, "c"), (90, "")],
)
def test_of_several_owners_the_one_that_was_given_it_first_keeps_a_partition_going(at_ns: int, owner: str) -> None:
    intervals = [owned("b", 0, 50, 61), owned("c", 0, 60, 90), owned("a", 0, 60, 80)]
    assert stuck._owner(part(intervals=intervals, tables=SimpleNamespace(**NOTHING_ELSE)), at_ns) == owner


@pytest.mark.parametrize("leaderless", [True, False])
@pytest.mark.parametrize(
    ("owner", "step", "told"),
    [
        (None, None, (("a",), "", "")),
        (None, "pause", (("a",), "pause", "")),
        ("b", "pause", (("b",), "pause", "rebalance")),
        ("b", None, (("b",), "", "")),
    ],
)
def test_a_partition_that_stands_still_is_told_with_its_owner_and_why(
    monkeypatch: pytest.MonkeyPatch, leaderless: bool, owner: str | None, step: str | None, told: Any
) -> None:
    asked = []

    def leaderless_at(tp: int, from_ns: int, to_ns: int) -> bool:
        asked.append((tp, from_ns, to_ns))
        return leaderless

    def another_cause(tables: Any, step: Any, window: Window) -> str:
        assert (tables, step.name, window) == (of.tables, "pause", Window(120, 200))
        return "rebalance"

    monkeypatch.setattr(stuck, "another_cause", another_cause)
    of = part(intervals=[owned("a", 0, 129, 132)], tables=SimpleNamespace(leaderless=leaderless_at, **NOTHING_ELSE))
    by = cast("Any", SimpleNamespace(name=step) if step else None)
    gap = stuck._Gap(stuck._Watch("the-kind", Window(100, 200), BOUND, owner=owner, step=by), 100, 200)
    stuck._tell(of, gap, stuck._Stop(7, 120))
    members, cause, excuse = told
    excuse = "no leader" if leaderless else excuse
    assert of.tallies == {("the-kind", 3, members, cause, excuse): Numbers(1, 7, 7, 120, 200)}
    assert asked == [(3, 120, 200)]


def test_a_partition_that_nobody_owns_when_the_bound_is_over_is_unowned() -> None:
    of = part(
        intervals=[owned("a", 0, 100, 130)],
        tables=SimpleNamespace(leaderless=lambda *_: False, **NOTHING_ELSE),
    )
    stuck._tell(of, stuck._Gap(watch(), 100, 200), stuck._Stop(7, 120))
    assert of.tallies == {("stuck-partition", 3, (), "unowned", ""): Numbers(1, 7, 7, 120, 200)}


# Who worked when.


def test_the_span_of_a_stream_reaches_from_its_first_begin_to_its_last_end() -> None:
    given = rows(
        ("a", "b"),
        who=[0, 0, 0, 0, 1],
        interval=[0, 0, 0, 2, 0],
        begin_ns=[30, 20, 10, 7, 0],
        done_ns=[35, 40, 99, 8, 0],
    )
    worked = np.array([True, True, False, True, False])
    assert [*_spans(given, worked)] == [Span(20, 40, "a", 0), Span(7, 8, "a", 2)]
    every = np.array([True, True, True, True, False])
    assert [*_spans(given, every)] == [Span(10, 99, "a", 0), Span(7, 8, "a", 2)]


@pytest.mark.parametrize(
    ("spans", "windows"),
    [
        ([(0, 10, "a"), (9, 20, "b")], [(9, 10)]),
        ([(0, 100, "a"), (10, 20, "b"), (15, 18, "c"), (30, 40, "b")], [(10, 20), (30, 40)]),
        ([(0, 50, "a"), (10, 20, "b"), (12, 60, "c")], [(10, 50)]),
        ([(0, 50, "a"), (1, 5, "a"), (4, 9, "b")], [(4, 9)]),
    ],
)
def test_meetings_last_as_long_as_another_one_works(
    spans: Sequence[tuple[int, int, str]], windows: Sequence[tuple[int, int]]
) -> None:
    assert [*meetings(Span(*span) for span in spans)] == windows


@pytest.mark.parametrize("step", [1, 2, 100])
@pytest.mark.parametrize(
    ("begun", "finished", "early", "last_ns"),
    [
        ([], [], [], 0),
        ([1, 2, 3], [2, 3, 4], [], 4),
        ([1, 1, 4], [2, 3, NEVER], [1], 3),
        ([1, 9, 2, 8], [9, 10, 3, 11], [2, 3], 11),
        ([1, 9, 4], [6, 3, 7], [2], 7),
        ([5, NEVER, 4], [NEVER, NEVER, 6], [], 6),
        ([5, NEVER, 6, 7], [8, NEVER, NEVER, 9], [2, 3], 9),
    ],
)
def test_a_place_is_early_that_was_begun_before_one_below_it_was_finished(
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    begun: Sequence[int],
    finished: Sequence[int],
    early: Sequence[int],
    last_ns: int,
) -> None:
    """However many places are looked at together."""
    monkeypatch.setattr("fencepost.checkers.kernel.arrays.STEP", step)
    places, last = _early(np.array(begun, np.int64), np.array(finished, np.int64))
    assert (places.tolist(), last) == (early, last_ns)


# How far a stream had got.


def seek(offset: int, begin_ns: int) -> Seek:
    return cast("Seek", SimpleNamespace(offset=offset, begin_ns=begin_ns))


STREAM: Any = SimpleNamespace(begin=0, end=5)
ORDERED = rows(offset=[3, 4, 5, 4, 6], delivered_ns=[10, 20, 30, 40, 50])


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ([], [-1, 3, 4, 5, 5, 6]),
        ([(4, 31)], [-1, 3, 4, 3, 4, 6]),
        ([(4, 40)], [-1, 3, 4, 3, 4, 6]),
        ([(4, 41)], [-1, 3, 4, 5, 3, 6]),
        ([(4, 51)], [-1, 3, 4, 5, 5, 6]),
        ([(2, 5)], [-1, 3, 4, 5, 5, 6]),
        ([(3, 15), (1, 35)], [-1, 2, 4, 0, 4, 6]),
        ([(9, 35)], [-1, 3, 4, 5, 5, 6]),
    ],
)
def test_an_aborted_transaction_takes_the_height_back_at_the_next_delivery(
    returns: Sequence[tuple[int, int]], expected: Sequence[int]
) -> None:
    found = heights(ORDERED, STREAM, [seek(*one) for one in returns], None)
    assert found.tolist() == expected


def test_the_next_stretch_begins_with_the_height_of_the_one_before() -> None:
    """Whatever went back before the last delivery that is remembered went back there."""
    before: Any = SimpleNamespace(rows=[0], height=8, heard_ns=20)
    told: list[tuple[list[Seek], list[int]]] = [
        ([], [8, 8, 8, 8, 8, 8]),
        ([seek(1, 20)], [8, 8, 8, 8, 8, 8]),
        ([seek(1, 21)], [8, 0, 4, 5, 5, 6]),
    ]
    for returns, expected in told:
        given = rows(offset=[3, 4, 5, 4, 6], delivered_ns=[10, 25, 30, 40, 50])
        assert heights(given, STREAM, returns, before)[1:].tolist() == expected[1:]


def test_what_is_remembered_adds_up_over_stretches_of_one_interval() -> None:
    one = Before.of(rows(offset=[7, 9, 8], poll=[0, 0, 1], delivered_ns=[10, 30, 20]), None)
    assert (one.reached, one.ord, one.delivered_ns, one.height, one.heard_ns) == (10, 2, 20, 9, 30)
    assert one.rows.offset.tolist() == [9, 8]
    more = rows(offset=[9, 8, 3], poll=[0, 1, 2], ord=[1, 2, 3], delivered_ns=[15, 20, 25])
    two = Before.of(more, one)
    assert (two.reached, two.ord, two.delivered_ns, two.height, two.heard_ns) == (10, 3, 25, 9, 30)
    three = Before.of(rows(offset=[9, 8, 3], interval=[0, 0, 1], delivered_ns=[15, 20, 25]), two)
    assert (three.reached, three.height, three.heard_ns) == (10, 3, 25)
    returned = Before.of(rows(offset=[7, 9, 4], delivered_ns=[10, 20, 30]), None, [seek(4, 25)])
    assert (returned.reached, returned.height) == (10, 4)


# What records leave behind.


def test_a_place_is_hopeless_that_was_parked_and_never_done_or_was_written_so() -> None:
    offsets = np.arange(10, 16)
    these = rows(offset=[10, 11, 11, 12], state=[State.PARKED, State.PARKED, State.DONE, State.BEGUN])
    places = Places([offsets, these.offset])
    logged = {"writer": np.array([-1, 0, 0, 0, 0, -1]), "seq": np.array([0, 0, 1, 2, 3, 2])}
    for every, expected in ((0, [10]), (3, [10, 13]), (2, [10, 12, 14]), (1, [10, 11, 12, 13, 14])):
        tables = SimpleNamespace(poison_every=every)
        found = _hopeless(part(rows=these, places=places, where=places.where(1), tables=tables, logged=logged.get))
        assert places.offsets(np.flatnonzero(found)).tolist() == expected


def commit(offset: int, begin_ns: int, incarnation: str) -> Any:
    return SimpleNamespace(offset=offset, begin_ns=begin_ns, incarnation=incarnation, outcome="ok")


def test_an_effect_is_missing_only_in_the_domain_and_of_what_was_wanted() -> None:
    tables = SimpleNamespace(declared=lambda tp, at_ns: f"act on {tp}")
    places = Places([np.arange(10, 20)])
    of = part(places=places, start=12, stop=18, tables=tables, commits=[commit(15, 7, "a"), commit(18, 9, "b")])
    _lacking(of, "missing-effect", np.arange(10) != 3, frozenset({14, 16, 99}))
    assert of.tallies == {
        ("missing-effect", 3, ("a",), "", "act on 3"): Numbers(1, 12, 12, 7, 7),
        ("missing-effect", 3, ("b",), "", "act on 3"): Numbers(2, 15, 17, 9, 9),
    }
    of.tallies.clear()
    _lacking(of, "missing-effect", np.ones(10, bool), frozenset(range(12, 18)))
    assert of.tallies == {}


def test_a_record_is_out_of_order_that_was_begun_after_the_letter_of_an_earlier_one_of_its_key() -> None:
    letters = [Effect(1, 3, o, by, 0, at, key) for key, at, o, by in LETTERS]
    late = LETTER_NS + 101
    given = rows(
        ("a", "b"),
        who=[0, 0, 0, 0, 1, 1, 1],
        key=[1, 1, 1, 2, 1, 1, 3],
        offset=[5, 6, 7, 8, 9, 4, 9],
        begin_ns=[late, late, late - 1, late, late + 7, late, late],
        state=[State.DONE, State.DONE, State.DONE, State.DONE, State.DONE, State.DONE, State.DONE],
    )
    parked = rows(("a",), key=[1], offset=[6], begin_ns=[late], state=[State.PARKED])
    promises: list[dict[str, bool]] = [{}, {"in_order": True}]
    tables = SimpleNamespace(
        letters_of={3: letters},
        promised=lambda kind: promises if kind == "parked" else (),
        declared=lambda tp, at: "act",
    )
    of = part(rows=given, tables=tables, whole=NOBODY)
    per_entity_order(of)
    assert of.tallies == {
        ("per-entity-order", 3, ("a", "x"), "", "act"): Numbers(1, 6, 6, 100, late),
        ("per-entity-order", 3, ("b", "x"), "", "act"): Numbers(1, 9, 9, 100, late + 7),
    }
    nothing = SimpleNamespace(letters_of={}, promised=tables.promised)
    for others in ({"rows": parked, "tables": tables}, {"rows": given, "tables": nothing}):
        of = part(**others, whole=NOBODY)
        per_entity_order(of)
        assert of.tallies == {}
    promises.pop()
    of = part(rows=given, tables=tables, whole=NOBODY)
    per_entity_order(of)
    assert of.tallies == {}


def test_a_record_is_out_of_order_that_was_done_before_the_letters_of_its_key_were_retried() -> None:
    """The first one that still stood by then is told. Who began before that may have waited for it."""
    late, until = LETTER_NS + 101, 3 * LETTER_NS
    given = rows(
        ("a", "b", "c", "d"),
        who=[0, 0, 1, 2, 3],
        key=[1] * 5,
        offset=[8, 9, 9, 9, 7],
        begin_ns=[late, *[late + 1] * 4],
        done_ns=[late, until - LETTER_NS - 1, until - LETTER_NS, until, until - LETTER_NS],
        state=[State.DONE] * 5,
    )
    letters = [
        Effect(1, 3, 5, "x", 0, 100, 1, retried_ns=until),
        Effect(2, 3, 7, "y", 0, 101, 1, retried_ns=until + 1),
        Effect(3, 3, 8, "z", 0, 102, 2),
    ]
    tables = SimpleNamespace(
        letters_of={3: letters}, promised=lambda kind: [{"in_order": True}], declared=lambda tp, at: ""
    )
    of = part(rows=given, tables=tables, whole=NOBODY)
    per_entity_order(of)
    assert of.tallies == {
        ("per-entity-order", 3, ("a", "x"), "", ""): Numbers(2, 8, 9, 100, late + 1),
        ("per-entity-order", 3, ("b", "y"), "", ""): Numbers(1, 9, 9, 101, late + 1),
    }
    of = part(rows=given, tables=tables, whole=SimpleNamespace(done=lambda offsets: {5: late, 7: late + 1, 8: 0}))
    per_entity_order(of)
    assert of.tallies == {
        ("per-entity-order", 3, ("a", "x"), "", ""): Numbers(1, 8, 8, 100, late),
        ("per-entity-order", 3, ("a", "y"), "", ""): Numbers(1, 9, 9, 101, late + 1),
        ("per-entity-order", 3, ("b", "y"), "", ""): Numbers(1, 9, 9, 101, late + 1),
    }


def test_a_record_is_out_of_order_that_was_begun_while_an_earlier_one_of_its_key_lay_behind_it() -> None:
    """Whatever is promised; it is not the copy itself, nor what lies behind that."""
    late, offsets = LETTER_NS + 101, [5, 6, 8, 9, 10]
    of_one = {"key": [1] * 5, "begin_ns": [late] * 5, "state": [State.DONE] * 5}
    tables = SimpleNamespace(
        letters_of={3: [Effect(1, 3, 5, "x", 0, 100, 1, again=9), Effect(2, 3, 6, "y", 0, 100, 1)]},
        promised=lambda kind: [],
        declared=lambda tp, at: "",
    )
    of = part(rows=rows(("a",), offset=offsets, **of_one), tables=tables)
    per_entity_order(of)
    assert of.tallies == {("per-entity-order", 3, ("a", "x"), "re-queued", ""): Numbers(2, 6, 8, 100, late)}


def test_a_record_with_a_copy_is_done_by_who_was_so_first() -> None:
    copies = [Effect(1, 3, 5, "x", 0, 100), Effect(2, 3, 5, "y", 0, 90), Effect(3, 3, 6, "a", 0, 80)]
    tables = SimpleNamespace(
        copies_of=by_tp([*copies, Effect(4, 3, 7, "x", 0, 100), Effect(5, 2, 9, "x", 0, 100)]),
        declared=lambda tp, at: "act",
        one_owner=lambda tp, one, other: "one owner" if one == other else "",
    )
    done = rows(
        ("a", "b"),
        who=[0, 0, 0, 0, 1, 1],
        offset=[5, 6, 7, 9, 5, 5],
        done_ns=[30, 40, 50, 60, 30, 20],
        state=[State.DONE, State.DONE, State.PARKED, State.DONE, State.DONE, State.PARKED],
    )
    of = part(rows=done, tables=tables)
    requeued_and_done(of)
    assert of.tallies == {
        ("requeued-and-done", 3, ("x", "a"), "", "act"): Numbers(1, 5, 5, 100, 30),
        ("requeued-and-done", 3, ("a",), "one owner", "act"): Numbers(1, 6, 6, 80, 40),
    }


LETTERS = [(1, 100, 5, "x"), (1, 50, 8, "y"), (2, 100, 8, "z")]  # key, when, offset, by whom


# Records that come again.

OWNED = {
    0: owned("a", 0, 100, 200, "revoked"),
    1: owned("b", 0, 100, 300, "closed"),
    2: owned("c", 0, 101, 300, "died"),
    3: owned("a", 0, 150, 300, "lost"),
}


def again(**more: Any) -> Any:
    """What looks up the intervals of ``OWNED``, by the number that rows give."""
    tables = Tables(Path(), intervals=tuple(OWNED.values()))
    found = {"interval_of": lambda who, number: OWNED.get(number), "tables": tables, **more}
    return part(**found)


@pytest.mark.parametrize(
    ("numbers", "done_ns", "before"),
    [
        ([2, 0], [10, 20], 0),
        ([1, 0], [10, 20], None),
        ([3, 0], [10, 20], None),
        ([2, 0], [20, 20], None),
        ([9, 0], [10, 20], None),
        ([2, 9], [10, 20], None),
        ([1, 2, 2, 0], [10, 11, 12, 20], 1),
        ([0, 2, 0], [10, 11, 20], 1),
    ],
    ids=["later", "as early", "its own", "at once", "in none", "of none", "the first one", "not its own"],
)
def test_work_is_stale_that_was_done_after_another_one_whose_interval_began_later(
    numbers: Sequence[int], done_ns: Sequence[int], before: int | None
) -> None:
    given = rows(interval=numbers, offset=[7] * len(numbers), begin_ns=[5] * len(numbers), done_ns=done_ns)
    found = [*repeats._stale_effect(again(), given, 0, len(numbers) - 1)]
    told = [("stale-effect", 3, ("a", "c"), 7, done_ns[before], 20)] if before is not None else []
    assert [(s.kind, s.tp, s.members, s.offset, s.from_ns, s.to_ns) for s in found] == told


@pytest.mark.parametrize(("begin_ns", "excuse"), [(200, "begun as its owner"), (201, "")])
def test_work_that_was_begun_after_its_partition_was_given_up_has_no_excuse(begin_ns: int, excuse: str) -> None:
    assert repeats._why_late(again(tables=Tables(Path())), OWNED[0], Window(begin_ns, 400)) == excuse


def test_work_that_was_begun_in_another_interval_of_its_member_has_one() -> None:
    assert repeats._why_late(again(), OWNED[0], Window(201, 400)) == "begun as its owner"


@pytest.mark.parametrize(
    ("committed", "moved"),
    [([], False), ([(5, 30)], False), ([(6, 30)], True), ([(6, 19)], False), ([(6, 41)], False), ([(6, 20)], True)],
)
def test_the_group_moved_on_when_something_above_was_accepted_meanwhile(
    committed: Sequence[tuple[int, int]], moved: bool
) -> None:
    class Times:
        @staticmethod
        def meeting(tp: int, window: Window) -> list[Any]:
            assert tp == 3
            return [SimpleNamespace(offset=o) for o, at in committed if window.begin_ns <= at <= window.end_ns]

    assert repeats._moved(again(tables=SimpleNamespace(accepted_of=Times)), 5, 20, 40) == moved


@pytest.mark.parametrize(
    ("begun_ns", "until_ns", "faulty"),
    [(0, 400, False), (50, 89, False), (50, 91, True), (141, 200, False), (139, 200, True)],
)
def test_a_fault_step_counts_from_a_bound_before_the_first_delivery(begun_ns: int, until_ns: int, faulty: bool) -> None:
    step = SimpleNamespace(begun_ns=begun_ns, in_effect=Window(begun_ns, until_ns))
    judged = SimpleNamespace(bounds=SimpleNamespace(loop_ns=BOUND))
    of = again(judged=judged, tables=SimpleNamespace(steps=[step]))
    assert repeats._faulty(of, 100, 140) == faulty


# Where members tell nothing, what commits reached.


def reached(*advances: tuple[int, int]) -> list[tuple[int, int, int]]:
    """The gaps between 100 and 150, and what was reached by then; when a commit took the partition on, and to where."""
    told = [SimpleNamespace(written=Window(at_ns, at_ns), offset=offset) for at_ns, offset in advances]
    found = part(tables=SimpleNamespace(advances=lambda tp: told if tp == 3 else []))
    watches = [stuck._Watch("stuck-partition", Window(100, 150), BOUND)]
    return [(gap.begin_ns, gap.end_ns, gap.reached) for gap in stuck._gaps_of_commits(cast("Part", found), watches)]


@pytest.mark.parametrize(
    ("advances", "gaps"),
    [
        ([], [(100, 150, 0)]),
        ([(100, 5)], [(100, 150, 5)]),  # at the very moment at which the gap begins
        ([(101, 5)], [(101, 150, 5)]),
        ([(90, 5), (110, 6), (121, 7), (149, 8)], [(110, 121, 6), (121, 149, 7)]),
    ],
)
def test_a_gap_of_commits_knows_what_was_reached_when_it_began(
    advances: list[tuple[int, int]], gaps: list[tuple[int, int, int]]
) -> None:
    assert reached(*advances) == gaps
