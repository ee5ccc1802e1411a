"""Rules of the kernel about commits, on small tables written here: each edge on either side, to the nanosecond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from small_parts import MOVES, STRETCH, TP, owned, part, rows

from fencepost.checkers.kernel.before import Before
from fencepost.checkers.kernel.commits import (
    commit_ahead,
    commit_before_send,
    off_by_one,
    off_by_one_of,
    work_after_fencing,
    wrong_start,
)
from fencepost.checkers.kernel.part import NEVER
from fencepost.checkers.kernel.places import Places
from fencepost.checkers.kernel.rows import Rows
from fencepost.checkers.kernel.tallies import ONE, Label, Numbers, Tallies
from fencepost.checkers.kernel.whole import First, between
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Accepted, Act, Commit, Partition, Round, Window
from fencepost.checkers.tables.seeks import Seek
from fencepost.model import TopicPartition

OFFSETS = np.arange(10, 15)


def by_place(**more: Any) -> Any:
    return SimpleNamespace(tp=TP, tallies=Tallies(), places=Places([OFFSETS]), **more)


# Past what nobody had finished.

TEN = First(10, 120)


def ahead(
    commits: Sequence[tuple[int, int, str]],
    finished_ns: Sequence[int],
    invisible: int = -1,
    first: First | None = TEN,
    **more: Any,
) -> Tallies:
    """Of commits (offset, begin, outcome) of an interval from 100 to 300, each of which takes 2."""
    told = tuple(Commit(TP, offset, "a", "", 1, begin, begin + 2, outcome) for offset, begin, outcome in commits)
    tables = Tables(Path(), intervals=(owned("a", 0, 100, 300),), commits=told, **more)
    times = np.array([*finished_ns, *[NEVER] * (len(OFFSETS) - len(finished_ns))], np.int64)
    of = by_place(
        tables=tables,
        intervals=tables.intervals,
        finished_ns=times,
        visible=np.array(invisible != OFFSETS),
        first_delivered=lambda name, number: first if (name, number) == ("a", 0) else None,
    )
    commit_ahead(of)
    return cast("Tallies", of.tallies)


@pytest.mark.parametrize(
    ("commits", "finished_ns", "found"),
    [
        ([(13, 200, "ok")], [200, 200, 200], None),
        ([(13, 200, "ok")], [200, 201, 200], Numbers(1, 11, 11, 200, 202)),
        ([(13, 200, "ok")], [NEVER, 200, 201], Numbers(2, 10, 12, 200, 202)),
        ([(10, 200, "ok")], [], None),
        ([(11, 200, "info")], [], Numbers(1, 10, 10, 200, 202)),
        ([(13, 200, "fail"), (11, 210, "ok")], [], Numbers(1, 10, 10, 210, 212)),
        ([(11, 200, "ok"), (13, 210, "ok")], [], Numbers(3, 10, 12, 200, 212)),
        ([(13, 200, "ok"), (11, 210, "ok"), (14, 220, "ok")], [], Numbers(4, 10, 13, 200, 222)),
        ([(12, 200, "ok"), (13, 210, "ok")], [200, 200, 211], Numbers(1, 12, 12, 210, 212)),
    ],
)
def test_a_commit_is_ahead_of_what_was_not_finished_by_its_begin_and_no_commit_before_it_passed(
    commits: Sequence[tuple[int, int, str]], finished_ns: Sequence[int], found: Numbers | None
) -> None:
    assert ahead(commits, finished_ns) == ({("commit-ahead", TP, ("a",), "", ""): found} if found else {})


@pytest.mark.parametrize(
    ("invisible", "found"), [(10, Numbers(1, 11, 11, 200, 202)), (11, Numbers(1, 10, 10, 200, 202))]
)
def test_a_commit_is_not_ahead_of_what_nobody_sees(invisible: int, found: Numbers) -> None:
    assert [*ahead([(12, 200, "ok")], [], invisible).values()] == [found]


@pytest.mark.parametrize(
    ("first", "accepted", "count"),
    [
        (None, (), 0),
        (TEN, (), 4),
        (First(12, 120), (), 2),
        (TEN, (Accepted(TP, 13, 0, 120),), 1),
        (TEN, (Accepted(TP, 13, 0, 121),), 4),
        (TEN, (Accepted(TP, 11, 0, 50, 0, 60), Accepted(TP, 13, 1, 99, 0, 101)), 1),
        (TEN, (Accepted(TP, 13, 0, 50, 0, 60), Accepted(TP, 11, 1, 70, 0, 100)), 3),
        (First(12, 120), (Accepted(TP, 11, 0, 50, 0, 60),), 2),
    ],
)
def test_a_commit_is_not_ahead_of_what_lies_below_the_start_of_its_interval(
    first: First | None, accepted: tuple[Accepted, ...], count: int
) -> None:
    found = ahead([(14, 200, "ok")], [], first=first, accepted=accepted)
    assert sum(numbers.count for numbers in found.values()) == count


@pytest.mark.parametrize(("since_ns", "excuse"), [(200, "declared act: made anew"), (201, "")])
def test_the_act_that_made_a_partition_excuses_commits_ahead_from_then_on(since_ns: int, excuse: str) -> None:
    found = ahead([(11, 200, "ok")], [], acts=(Act("made anew", TP, since_ns, skipped=0),))
    assert [*found] == [("commit-ahead", TP, ("a",), "", excuse)]


# Above what was sent only then.


def sent(accepted: Sequence[Accepted], *pieces: Sequence[tuple[int, int]], **more: Any) -> dict[Any, Numbers]:
    """Of pieces of sends (offset, when); the commit of order n is of ``wn``."""
    columns = [np.array(piece, np.int64).reshape(-1, 2).T for piece in pieces]
    places = Places([OFFSETS, *(offset for offset, _ in columns)])
    tables = SimpleNamespace(
        accepted_of={TP: accepted}, writer=lambda a: f"w{a.order}", declared=lambda tp, at_ns: f"act on {tp} by {at_ns}"
    )
    of = by_place(
        tables=tables,
        sent=[{"offset": offset, "sent_ns": sent_ns} for offset, sent_ns in columns],
        sent_where=[places.where(1 + n) for n in range(len(columns))],
        **{"visible": np.full(len(OFFSETS), True), "delivered_ns": np.full(len(OFFSETS), NEVER), **more},
    )
    commit_before_send(of)
    assert {key[:2] for key in of.tallies} <= {("commit-beyond-end", TP)}
    return {key[2:]: numbers for key, numbers in of.tallies.items()}


def by(order: int, at_ns: int) -> Any:
    return (f"w{order}",), "", f"act on {TP} by {at_ns}"


@pytest.mark.parametrize(
    ("accepted", "sends", "found"),
    [
        ([], [(10, 999)], {}),
        ([Accepted(TP, 11, 0, 100, 5)], [(10, 105)], {}),
        ([Accepted(TP, 11, 0, 100, 5)], [(10, 106)], {by(0, 100): Numbers(1, 10, 10, 100, 106)}),
        ([Accepted(TP, 10, 0, 100)], [(10, 106)], {}),
        (
            [Accepted(TP, 11, 4, 100), Accepted(TP, 13, 5, 110)],
            [(10, 101), (11, 110), (12, 111), (13, 999)],
            {by(4, 100): Numbers(1, 10, 10, 100, 101), by(5, 110): Numbers(1, 12, 12, 110, 111)},
        ),
        (
            [Accepted(TP, 13, 4, 100), Accepted(TP, 11, 5, 110)],
            [(10, 101), (11, 102)],
            {by(4, 100): Numbers(2, 10, 11, 100, 102)},
        ),
        (
            [Accepted(TP, 11, 4, 90, 11), Accepted(TP, 13, 5, 100, 0)],
            [(10, 200)],
            {by(5, 100): Numbers(1, 10, 10, 100, 200)},
        ),
        (
            [Accepted(TP, 11, 4, 95, 5), Accepted(TP, 13, 5, 99, 1)],
            [(10, 200)],
            {by(4, 95): Numbers(1, 10, 10, 95, 200)},
        ),
        (
            [Accepted(TP, 11, 5, 95, 5), Accepted(TP, 13, 4, 99, 1)],
            [(10, 200)],
            {by(4, 99): Numbers(1, 10, 10, 99, 200)},
        ),
    ],
)
def test_a_record_is_sent_too_late_after_the_first_commit_above_it_that_was_certainly_written(
    accepted: Sequence[Accepted], sends: Sequence[tuple[int, int]], found: Mapping[Any, Numbers]
) -> None:
    assert sent(accepted, sends) == found
    assert sent(accepted, *([one] for one in sends)) == found, "piece by piece"
    assert sent(accepted, sends[::-1]) == found, "in whatever order"


LATE = [Accepted(TP, 12, 0, 100)], [(10, 150), (11, 150)]


def test_a_send_of_what_nobody_sees_is_not_too_late() -> None:
    assert [n.first for n in sent(*LATE, visible=np.array(OFFSETS != 10)).values()] == [11]


@pytest.mark.parametrize(("delivered_ns", "count"), [(149, 1), (150, 2), (NEVER, 2)])
def test_an_offset_of_which_somebody_got_a_record_before_the_send_was_given_again(
    delivered_ns: int, count: int
) -> None:
    times = np.array([delivered_ns, *[NEVER] * 4])
    assert [n.count for n in sent(*LATE, delivered_ns=times).values()] == [count]


# One below what was finished, everywhere.


@pytest.mark.parametrize(
    ("final", "finished_ns", "behind"),
    [
        (12, [5, 6], None),
        (12, [5, 6, 7], Numbers(1, 12, 12, 0, 7)),
        (12, [5, 6, 7, 0, 3], Numbers(2, 12, 14, 0, 7)),
        (10, [5, 6], Numbers(2, 10, 11, 0, 5)),
        (-1, [0, 6], Numbers(1, 11, 11, 0, 6)),
    ],
)
def test_what_was_finished_behind_the_last_commit_is_told(
    final: int, finished_ns: Sequence[int], behind: Numbers | None
) -> None:
    times = np.array([*finished_ns, *[0] * (len(OFFSETS) - len(finished_ns))])
    tables = SimpleNamespace(final_committed=lambda tp: {TP: final}[tp])
    seen = by_place(tables=tables, visible=np.full(5, True), finishes=np.minimum(times, 1), finished_ns=times)
    off_by_one(seen)
    done = {("#done", TP, (), "", ""): ONE}
    assert seen.tallies == ({**done, ("#behind", TP, (), "", ""): behind} if behind else done)
    unseen = by_place(tables=tables, visible=np.full(5, False), finishes=seen.finishes, finished_ns=times)
    off_by_one(unseen)
    assert unseen.tallies == {}


def finals(*told: Numbers | None, quiet: bool = True, commits: tuple[Commit, ...] = ()) -> list[Any]:
    """Of partitions of which something was done, with what is behind; 0 has 5 as its last commit, 1 has 7, and 2 none
    that is left."""
    tallies = Tallies()
    tallies.put("rewind", 0, Label(("x",)), Numbers(1, 5, 5, 1, 1))
    for tp, behind in enumerate(told):
        tallies.put("#done", tp)
        if behind:
            tallies.put("#behind", tp, numbers=behind)
    accepted = [Accepted(tp, offset, n, 100 + n, 10) for n, (tp, offset) in enumerate([(0, 3), (0, 5), (1, 7)])]
    accepted += [Accepted(2, 9, 3, 103, 10), Accepted(2, -1, 4, 104, 10)]
    phases = {"warm-up": Window(1, 2), "drain": Window(2, 300 if quiet else 0)}
    tables = Tables(Path(), accepted=tuple(accepted), commits=commits, phases=phases)
    vars(tables)["writer_of"] = {1: "a"}
    return [(s.kind, s.tp, s.members, s.offset, s.from_ns, s.to_ns) for s in off_by_one_of(tallies, tables)]


ZERO, ONE_BEHIND = Numbers(1, 5, 5, 0, 90), Numbers(1, 7, 7, 0, 91)
SHOWN = [("off-by-one", 0, ("a",), 5, 101, 101), ("off-by-one", 1, (), 7, 102, 102)]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ([ZERO, ONE_BEHIND], SHOWN),
        ([ZERO, ONE_BEHIND, Numbers(1, 9, 9, 0, 9)], SHOWN),
        ([ZERO], []),
        ([ZERO, None], []),
        ([ZERO, Numbers(2, 7, 8, 0, 91)], []),
        ([ZERO, Numbers(1, 8, 8, 0, 91)], []),
        ([ZERO, Numbers(1, 7, 7, 0, 92)], []),
        ([Numbers(1, 5, 5, 0, 91), ONE_BEHIND], []),
    ],
)
def test_a_group_is_off_by_one_where_each_partition_has_one_left_that_was_finished_before_the_last_commit(
    told: Sequence[Numbers | None], shown: Sequence[Any]
) -> None:
    assert finals(*told) == shown


@pytest.mark.parametrize(("offset", "shown"), [(7, SHOWN), (8, [])])
def test_a_group_that_tried_to_commit_more_is_not_off_by_one(offset: int, shown: Sequence[Any]) -> None:
    assert finals(ZERO, ONE_BEHIND, commits=(Commit(1, offset, "a", "", 1, 50, 0, ""),)) == shown


def test_a_group_is_not_off_by_one_before_its_drain_ended() -> None:
    assert finals(ZERO, ONE_BEHIND, quiet=False) == []


# Out of the group, and carried on.


def stretch(
    tables: Tables, given: Rows, before: Before | None = None, visible: Sequence[int] = (10, 11, 13, 14)
) -> Any:
    """Of a partition where the group starts at 10, all deliveries of some members."""

    def polls(name: str, number: int, after_ns: int) -> tuple[int, int]:
        those = given.poll[(given.interval == number) & (given.delivered_ns > after_ns)].tolist()
        return min(those), max(those)

    whole = SimpleNamespace(polls=polls, between=partial(between, [np.array(visible, np.int64)]))
    return part(tables, given, STRETCH, start=10, before=before, whole=whole)


SCENARIO = {"scenario": {"group": {"config": {"heartbeat.interval.ms": "0.001"}}}}  # 1,000 ns


def refused(error: str, generation: int = 3, begin_ns: int = 200, mode: str = "sync") -> Commit:
    return Commit(TP, 5, "a", "", generation, begin_ns, begin_ns + 10, "fail", error, mode)


def carried_on(
    commits: tuple[Commit, ...], delivered_ns: Sequence[int], begin_ns: Sequence[int], **more: Any
) -> dict[Any, Numbers]:
    """The member got 10 in its first poll, 11 in the second, 14 and 13 in the third, and 15 in another interval."""
    tables = Tables(
        Path(),
        SCENARIO,
        intervals=(owned("a", 7, 10, 20), owned("a", 0, 100, 5000), owned("a", 1, 6000, 9000)),
        commits=commits,
        **more,
    )
    given = rows(
        interval=[0, 0, 0, 0, 1],
        poll=[0, 1, 2, 2, 3],
        offset=[10, 11, 14, 13, 15],
        delivered_ns=[*delivered_ns, 6010],
        begin_ns=[*begin_ns, 6010],
    )
    of = stretch(tables, given)
    work_after_fencing(of)
    return {key[2:]: numbers for key, numbers in of.tallies.items()}


GONE = "UNKNOWN_MEMBER_ID"
FENCED = (refused("REBALANCE_IN_PROGRESS", begin_ns=150), refused(GONE), refused("ILLEGAL_GENERATION", begin_ns=300))
DELIVERED, BEGUN = [1210, 1211, 1220, 1221], [1210, 1211, 1222, 1221]


@pytest.mark.parametrize(
    ("delivered_ns", "begin_ns", "found"),
    [
        (DELIVERED, BEGUN, Numbers(2, 13, 14, 210, 1222)),
        ([1211, 1211, 1220, 1221], BEGUN, Numbers(3, 11, 14, 210, 1222)),
        ([1210, 1210, 1220, 1221], BEGUN, None),
        (DELIVERED, [1210, 1211, 0, 1221], Numbers(1, 13, 13, 210, 1221)),
        (DELIVERED, [0, 0, 1220, 0], Numbers(1, 14, 14, 210, 1220)),
        (DELIVERED, [1210, 1211, 0, 0], None),
        ([100, 110, 120, 130], [100, 110, 120, 130], None),
    ],
)
def test_who_is_out_carries_on_with_what_comes_after_the_first_poll_later_than_a_heartbeat(
    delivered_ns: Sequence[int], begin_ns: Sequence[int], found: Numbers | None
) -> None:
    assert carried_on(FENCED, delivered_ns, begin_ns) == ({(("a",), GONE, ""): found} if found else {})


@pytest.mark.parametrize(
    ("generation", "begin_ns", "found"),
    [
        (4, 1222, Numbers(1, 13, 13, 210, 1221)),
        (4, 1223, Numbers(2, 13, 14, 210, 1222)),
        (3, 210, Numbers(2, 13, 14, 210, 1222)),
        (3, 211, None),  # written after the answer
        (4, 220, None),
    ],
)
def test_who_is_in_a_later_generation_is_in_again(generation: int, begin_ns: int, found: Numbers | None) -> None:
    again = Round(0, generation, begin_ns, begin_ns, ("a",))
    assert [*carried_on(FENCED, DELIVERED, BEGUN, rounds=(again,)).values()] == ([found] if found else [])


@pytest.mark.parametrize(
    "commit", [refused(GONE, -1), refused(GONE, mode="auto"), refused(""), refused(GONE, begin_ns=99)]
)
def test_nobody_is_out_who_was_not_told_so_of_a_commit_of_the_interval(commit: Commit) -> None:
    assert carried_on((commit,), DELIVERED, BEGUN) == {}


@pytest.mark.parametrize(
    ("since_ns", "excuses"),
    [
        (1221, {"the host stood still": Numbers(2, 13, 14, 210, 1222)}),
        (1222, {"": Numbers(1, 13, 13, 210, 1221), "the host stood still": Numbers(1, 14, 14, 210, 1222)}),
        (1223, {"": Numbers(2, 13, 14, 210, 1222)}),
    ],
)
def test_what_hindered_a_member_from_hearing_of_it_excuses_what_it_begins_from_then_on(
    since_ns: int, excuses: Mapping[str, Numbers]
) -> None:
    found = carried_on(FENCED, DELIVERED, BEGUN, stalls=(Window(since_ns, 9000),))
    assert found == {(("a",), GONE, excuse): numbers for excuse, numbers in excuses.items()}


@pytest.mark.parametrize(("end_ns", "excuse"), [(209, ""), (210, "the host stood still")])
def test_what_was_over_before_the_answer_hindered_nobody(end_ns: int, excuse: str) -> None:
    found = carried_on(FENCED, DELIVERED, BEGUN, stalls=(Window(0, end_ns),))
    assert [*found] == [(("a",), GONE, excuse)]


# Not where the group had got to.


def started(given: Rows, *committed: int, before: Before | None = None, **more: Any) -> dict[Any, Numbers]:
    """Intervals from 100, 200 and 300 on, of ``a`` and of ``b``; all was committed long before."""
    tables = Tables(
        Path(),
        intervals=tuple(owned(name, n, 100 * n + 100) for name in "ab" for n in range(3)),
        accepted=tuple(Accepted(TP, offset, n, 50 + n, 0, 60 + n) for n, offset in enumerate(committed)),
        **more,
    )
    of = stretch(tables, given, before)
    wrong_start(of)
    assert {key[:3:2] for key in of.tallies} <= {("wrong-start", ("a",)), ("wrong-start", ("b",))}
    return {(*key[2], *key[3:]): numbers for key, numbers in of.tallies.items()}


def first(offset: int) -> Rows:
    return rows(offset=[offset, 13], delivered_ns=[120, 119])


KNOWN = {"partitions": {TP: Partition(TP, TopicPartition("orders", 0), 0, 15)}}
LATEST = {"scenario": {"scenario": {"group": {"config": {"auto.offset.reset": "latest"}}}}}


@pytest.mark.parametrize(
    ("offset", "committed", "more", "wrong"),
    [
        (10, [10], {}, False),
        (11, [10], {}, True),
        (10, [11], {}, True),
        (13, [12], {}, False),  # nobody sees 12
        (12, [10], {}, False),
        (14, [12], {}, True),
        (14, [13], {}, True),
        (10, [5], {}, False),
        (10, [], {}, False),
        (11, [], {}, True),
        (11, [], LATEST, False),
        (11, [10], LATEST, True),
        (10, [15], KNOWN, True),
        (10, [16], KNOWN, False),
        (11, [16], KNOWN, True),
    ],
)
def test_a_stream_starts_with_the_first_record_that_can_be_seen_from_where_the_group_was(
    offset: int, committed: Sequence[int], more: Mapping[str, Any], wrong: bool
) -> None:
    told = {("a", "", ""): Numbers(1, offset, offset, 100, 120)}
    assert started(first(offset), *committed, **more) == (told if wrong else {})


@pytest.mark.parametrize(
    ("streams", "wrong"),
    [
        ([("a", 0, [10, 11]), ("a", 1, [13])], []),
        ([("a", 0, [10, 11]), ("a", 1, [14])], [("a", 14)]),
        ([("a", 0, [10, 11]), ("a", 1, [10])], []),
        ([("a", 0, [10, 13, 11]), ("a", 1, [14])], []),
        ([("a", 0, [10, 13]), ("a", 1, [10]), ("a", 2, [14])], []),
        ([("a", 0, [10]), ("a", 1, [10, 13]), ("a", 2, [11])], [("a", 11)]),
        ([("a", -1, [10, 13]), ("a", 0, [14])], []),
        ([("a", 0, [10, 13]), ("b", 0, [14])], [("b", 14)]),
        ([("a", -1, [14]), ("a", 2, [10]), ("b", 0, [14])], [("b", 14)]),
        ([("a", 7, [14]), ("b", 0, [14])], [("b", 14)]),
    ],
)
def test_a_member_may_go_on_behind_all_that_it_had_got_before(
    streams: Sequence[tuple[str, int, Sequence[int]]], wrong: Sequence[tuple[str, int]]
) -> None:
    those = [(name == "b", number, offset) for name, number, offsets in streams for offset in offsets]
    who, interval, offset = zip(*those, strict=True)
    at = [100 * max(number, 0) + 120 for number in interval]
    given = rows(("a", "b"), who=who, interval=interval, offset=offset, delivered_ns=at)
    assert [(key[0], numbers.first) for key, numbers in started(given, 10).items()] == wrong


@pytest.mark.parametrize(("reached", "wrong"), [(13, [14]), (14, []), (15, [14])])
def test_what_a_member_had_got_in_stretches_before_counts_and_is_not_judged_again(
    reached: int, wrong: Sequence[int]
) -> None:
    remembered = rows(offset=[11], delivered_ns=[120])
    before = Before(remembered, reached, 0, 120, 11, 120)
    given = rows(offset=[11, 14], interval=[0, 1], delivered_ns=[120, 220])
    assert [numbers.first for numbers in started(given, 10, before=before).values()] == wrong


@pytest.mark.parametrize(("seek", "cause"), MOVES)
def test_who_moved_its_position_since_it_was_assigned_started_wrong_by_that(seek: Seek, cause: str) -> None:
    """By the one that went to where it began."""
    assert [*started(first(11), 10, seeks=(seek._replace(offset=11),))] == [("a", cause, "")]
    assert [*started(first(11), 10, seeks=(seek,))] == [("a", "", "")]


@pytest.mark.parametrize(("since_ns", "excuse"), [(120, "declared act: reset"), (121, "")])
def test_a_declared_act_by_the_first_delivery_excuses_where_it_started(since_ns: int, excuse: str) -> None:
    assert [*started(first(11), 10, acts=(Act("reset", TP, since_ns),))] == [("a", "", excuse)]
