"""A topic that is deleted and made again: what comes of that is permitted, if the history tells of the act.

What is wrong with the topic that there is now, or elsewhere, is a violation all the same.

Both finders are asked, also with partitions cut into ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import certainty
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.promises import Commits, Delivery, Effects, Order, Ownership, Parked, Progress, Requeued
from fencepost.checkers.requirements import requirement_of
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import Damage
from fencepost.model import Anomaly
from history.builder import HistoryBuilder, ns
from history.test_coordination import tell_current
from history.test_kernel_equals_oracle import agreed

ACT = "declared act: recreate_topic"
GONE = "orders (deleted)"
PROMISED = {k for p in (Commits, Delivery, Effects, Order, Ownership, Parked, Progress, Requeued) for k in p.kinds}
Row = tuple[str, str, int, int, int, str]  # kind, topic, partition, first and last offset, excuse


class Story:
    """Ten records of orders-0 before it is made again (4 to 5 s), eight of which are committed; then six others. As
    many of orders-1 as before."""

    def __init__(self, folder: Path, classic: bool = False, promises: Iterable[Mapping[str, Any]] = ()) -> None:
        self.h = h = HistoryBuilder(folder, 2, classic=classic, promises=promises)
        self.old = h.remade("recreate_topic", 4, 5)
        h.write(10, tp=self.old)
        h.write(10, tp=1)
        self.a = a = h.member(0)
        for tp in (0, 1):
            a.assigned(1, tp)
        a.process(range(10), 2, self.old)
        a.process(range(10), 2.5, 1)
        a.commit(8, 3)
        a.commit(10, 3, 1)
        h.accepts(None, 4.5)
        h.write(6, at=5.5)

    def goes_on(self, offsets: Iterable[int] = range(6), committed: int = 6) -> None:
        """The member gets records of the new one, commits, and leaves."""
        self.a.process(offsets, 6)
        self.a.commit(committed, 7)
        for tp in (0, 1):
            self.a.revoked(38, tp)
        self.a.close(39)


def told(run: Path) -> list[Row]:
    found, _ = agreed(run, Bounds())
    return sorted(
        (a.kind, a.topic, a.partition, a.first_offset, a.last_offset, a.excuse) for a in found if a.kind in PROMISED
    )


LOST = [
    ("delivered-then-lost", GONE, 0, 0, 9, ACT),
    ("lost-write", GONE, 0, 0, 9, ACT),
]


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
def test_what_was_written_before_is_gone_on_purpose_and_the_same_offsets_are_judged_anew(
    tmp_path: Path, classic: bool
) -> None:
    story = Story(tmp_path, classic)
    story.goes_on()
    assert told(story.h.seal()) == LOST


def test_commits_of_before_that_come_late_are_permitted_until_the_first_of_the_new_one(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.a.commit(10, 5.2)  # above all that the new one ever has
    story.goes_on()
    assert told(story.h.seal()) == sorted(
        [
            ("commit-beyond-end", "orders", 0, 0, 10, ACT),  # and each record is sent after it
            ("commit-regression", "orders", 0, 6, 6, ACT),
            *LOST,
        ]
    )


def test_a_commit_that_was_answered_before_is_looked_for_among_those_of_before(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.a.commit(10, 3.9995)  # answered while the act goes on
    story.a.commit(9, 4.2)  # and one that begins in it, ere the coordinator has deleted anything
    story.goes_on()
    regression = ("commit-regression", GONE, 0, 9, 9, ACT)
    assert told(story.h.seal()) == sorted([regression, *LOST])


def test_what_names_a_partition_is_told_of_the_one_that_there_was(tmp_path: Path) -> None:
    story = Story(tmp_path)
    h, a = story.h, story.a
    a.commit(9, 3.5, outcome=None)  # nobody knows what became of it
    h.accepts(10, 4.8)  # after the coordinator deleted what was committed
    a.fetches(None, 5.2)
    b = h.member(1)
    h.gives(b, 0, 5.3)
    story.goes_on()
    tables, old = load(h.seal()), story.old
    assert [(c.tp, c.offset) for c in tables.commits if c.tp != 1] == [(old, 8), (old, 9), (0, 6)]
    assert [(a.tp, a.offset) for a in tables.accepted if a.tp != 1] == [(old, 8), (old, -1), (0, 10), (0, 6)]
    assert [(q.tp, q.offset) for q in tables.asked_commits if q.tp != 1] == [(old, 8), (old, 9), (0, 6)]
    assert [q.tp for q in tables.fetched] == [0]
    given = {tp: [g.member_id for g in tables.given_of.get(tp, []) if g.member_id] for tp in (0, old)}
    assert given == {0: [a.member_id, b.member_id], old: [a.member_id]}


def test_effects_of_one_offset_before_and_after_are_of_two_records(tmp_path: Path) -> None:
    story = Story(tmp_path)
    kinds = {"effect": "duplicate-effect", "dead-letter": "dead-letter-twice", "requeued": "requeue-twice"}
    for kind in kinds:
        for seq, at in enumerate((2.6, 5.5, 6.5, 7.5)):  # the second one of a record that the member had in its hands
            if (kind, seq) != ("dead-letter", 1):
                story.a.effect(4 + seq % 2, at, seq=seq, kind=kind)
    story.goes_on()
    found = [row for row in told(story.h.seal()) if row[0] in kinds.values()]
    assert found == []


def test_effects_of_nobody_known_are_of_the_one_that_there_was_in_the_end(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.goes_on()
    detail = {"seq": 1, "token": 0, "key": -1}
    story.h.harness.note("effect", partitions=[["orders", 0, 4]], detail=detail, begin_ns=ns(41), end_ns=ns(41))
    assert [(effect.tp, effect.offset) for effect in load(story.h.seal()).effects] == [(0, 4)]


def test_what_a_member_wrote_as_it_began_with_the_new_one_may_be_of_before(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.a.effect(5, 6.001, seq=0)
    story.a.effect(5, 7.5, seq=1)
    story.a.effect(4, 7.1, seq=2)
    story.a.effect(4, 7.6, seq=3)
    story.goes_on()
    found = [row for row in told(story.h.seal()) if row[0] == "duplicate-effect"]
    assert found == [("duplicate-effect", "orders", 0, 4, 4, ""), ("duplicate-effect", "orders", 0, 5, 5, ACT)]


@pytest.mark.parametrize(("begun", "topic", "excuse"), [(3.95, GONE, ""), (3.999, GONE, ACT), (4.05, "orders", ACT)])
def test_a_commit_that_was_answered_and_is_not_there_is_excused_if_the_topic_went_before_its_end(
    tmp_path: Path, begun: float, topic: str, excuse: str
) -> None:
    story = Story(tmp_path)
    story.a.commit(9, 3.5)  # the one before is superseded and still there: the coordinator's log was not cleaned
    story.a.commit(10, begun, accepted=False, logged=False)  # it takes 2 ms
    story.goes_on()
    (missing,) = (row for row in told(story.h.seal()) if row[0] == "acknowledged-commit-missing")
    assert missing == ("acknowledged-commit-missing", topic, 0, 10, 10, excuse)


def test_what_was_overtaken_before_is_of_the_one_that_there_was(tmp_path: Path) -> None:
    story = Story(tmp_path)
    h, a = story.h, story.a
    a.commit(9, 3.5)
    a.commit(10, 3.6, mode="transaction", accepted=False, logged=False)
    h.accepts(10, 3.6004, producer=7)
    h.accepts(9, 3.6008)
    h.ends_transaction(7, 3.6012)
    story.goes_on()
    assert told(h.seal()) == LOST


@pytest.mark.parametrize(("begun", "excuse"), [(False, ACT), (True, "")], ids=["of before", "of the new one"])
def test_a_commit_of_before_is_permitted_although_another_member_has_settled(
    tmp_path: Path, begun: bool, excuse: str
) -> None:
    """The coordinator of the consumer protocol gives the new one to another member, while one works on what is gone."""
    story = Story(tmp_path)
    h, a, b = story.h, story.a, story.h.member(1)
    tell_current(h, [(b, [0])], [5.6])
    if begun:
        a.process([0], 5.55)  # it has one of the new one in its hands: it may know better
    b.assigned(5.7)
    b.process(range(3), 6)
    b.commit(3, 6.2)
    a.commit(10, 6.4)
    a.revoked(6.5)
    b.process(range(3, 6), 7)
    b.commit(6, 8)
    b.revoked(37)
    b.close(37.5)
    a.revoked(38, 1)
    a.close(39)
    kinds = ("zombie-commit", "commit-beyond-end", "commit-regression")
    found = {row[0]: row[-1] for row in told(h.seal()) if row[0] in kinds and row[1] == "orders"}
    assert found == dict.fromkeys(kinds, excuse)


@pytest.mark.parametrize("late", [False, True], ids=["its owner", "who had it before"])
def test_who_has_what_is_gone_for_long_does_not_take_the_new_one_from_its_owner(tmp_path: Path, late: bool) -> None:
    """The coordinator of the consumer protocol says with each change of a member all that it has, by the topics' ids;
    one that never gave up what is gone is said to have the partition of that name, too."""
    story = Story(tmp_path)
    h, a, b, c = story.h, story.a, *(story.h.member(n) for n in (1, 2))
    tell_current(h, [(b, [0]), (a, [0, 1])], [5.6, 5.65])
    b.assigned(5.7, reported=False)
    b.process(range(3), 6)
    b.commit(3, 6.2)
    tell_current(h, [(a, [0, 1])], [6.3])
    b.process(range(3, 5), 7)
    b.commit(5, 8)
    b.revoked(8.4, reported=False)
    tell_current(h, [(b, []), (c, [0]), (a, [0, 1])], [8.5, 8.9, 9.1])
    c.assigned(9.2, reported=False)
    c.process([5], 9.5)
    (b if late else c).commit(6, 10)
    for member, tp in ((c, 0), (a, 1)):
        member.revoked(38, tp)
        member.close(39)
    found = [row for row in told(h.seal()) if row[0] in ("zombie-commit", "foreign-commit")]
    assert found == ([("zombie-commit", "orders", 0, 6, 6, "")] if late else [])


@pytest.mark.parametrize(("committed", "excuse"), [(None, ACT), (10, ACT), (3, "")])
def test_who_is_told_to_start_where_the_former_one_was_begins_anew(
    tmp_path: Path, committed: int | None, excuse: str
) -> None:
    """A commit of before came late, maybe again by who had records of both, and the client finds no record there."""
    story = Story(tmp_path)
    a = story.a
    a.commit(10, 5.2)
    a.process(range(6), 5.6)
    if committed:
        a.commit(committed, 6.3)
    a.revoked(6.5)
    a.assigned(6.6, generation=2)
    a.process(range(3), 6.7)
    a.commit(1, 6.9, generation=2)
    a.process(range(3, 6), 7)
    a.commit(6, 8, generation=2)
    for tp in (0, 1):
        a.revoked(38, tp)
    a.close(39)
    kinds = ("redelivery-below-commit", "redelivery", "avoidable-redelivery")
    found = [row for row in told(story.h.seal()) if row[0] in kinds]
    below = ("redelivery-below-commit", "orders", 0, 0, 2 if committed == 3 else 5, excuse)
    assert found == ([("avoidable-redelivery", "orders", 0, 3, 5, ""), below] if committed == 3 else [below])


@pytest.mark.parametrize(("at", "excuse"), [(5.1, ACT), (8.1, "")])
def test_two_may_own_one_name_while_one_of_them_has_what_is_gone(tmp_path: Path, at: float, excuse: str) -> None:
    """The coordinator of the consumer protocol knows topics by their ids, and gives the new one at once."""
    story = Story(tmp_path)
    h, a, b = story.h, story.a, story.h.member(1)
    tell_current(h, [(b, [0])], [at])
    b.assigned(at + 0.1)
    a.revoked(at + 0.3)
    h.takes(b, 0, at + 0.4)
    b.revoked(at + 0.5)
    a.assigned(at + 0.6, generation=2)
    story.goes_on()
    found = [row for row in told(h.seal()) if row[0].endswith("-overlap")]
    assert found == [(kind, "orders", 0, -1, -1, excuse) for kind in ("assignment-overlap", "coordinator-overlap")]


def test_who_owns_a_partition_is_asked_of_its_name_alone(tmp_path: Path) -> None:
    story = Story(tmp_path, promises=[{"type": "progress", "within_s": 5}])
    story.a.revoked(4.6)
    story.h.takes(story.a, 0, 4.61)
    story.a.assigned(5.5, generation=2)
    story.goes_on()
    run = story.h.seal()
    assert told(run) == LOST
    tables = load(run)
    assert requirement_of("progress").facts(tables, JudgedCounts(visible=1)) == 2
    assert requirement_of("ownership").facts(tables, JudgedCounts()) == 3


def test_without_the_act_all_of_it_is_a_violation(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.goes_on()
    found = {row[0]: row[-1] for row in told(undeclared(story))}
    assert {"delivered-then-lost", "lost-write", "inconsistent-offsets", "rewind"} <= set(found)
    assert set(found.values()) == {""}


def undeclared(story: Story) -> Path:
    """The same history, of which the harness does not tell the act."""
    h, a = story.h, story.a
    for n, row in enumerate([row for row in a.rows if row.tp in (0, story.old)]):
        row.tp, row.ord = 0, n
    h.produced = [p._replace(tp=0) if p.tp == story.old else p for p in h.produced]
    h.log = [record for record in h.log if record.tp != story.old]
    h.partitions.pop()
    h.successors.clear()
    path = h.run.history / "events" / "harness.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"act"' not in line))
    return h.seal()


def a_write_is_lost(story: Story) -> list[Row]:
    story.goes_on()
    story.h.loses(3)
    return [("delivered-then-lost", "orders", 0, 3, 3, ""), ("lost-write", "orders", 0, 3, 3, "")]


def a_write_of_another_partition_is_lost(story: Story) -> list[Row]:
    story.goes_on()
    story.h.loses(3, 1)
    return [("delivered-then-lost", "orders", 1, 3, 3, ""), ("lost-write", "orders", 1, 3, 3, "")]


def a_record_is_passed_over(story: Story) -> list[Row]:
    story.goes_on([0, 1, 3, 4, 5])
    return [
        ("commit-ahead", "orders", 0, 2, 2, ACT),
        ("poll-skip", "orders", 0, 2, 2, ACT),
        ("unseen", "orders", 0, 2, 2, ""),
    ]


def nobody_goes_on(story: Story) -> list[Row]:
    story.a.revoked(38, 1)
    story.a.close(39)
    return [("stuck-partition", "orders", 0, 0, 0, ""), ("unconsumed", "orders", 0, 0, 5, "")]


def a_commit_goes_back_later(story: Story) -> list[Row]:
    a = story.a
    a.process(range(6), 6)
    for offset, at in ((4, 6.5), (6, 7), (5, 8)):
        a.commit(offset, at)
    story.goes_on([], 6)
    return [("commit-regression", "orders", 0, 5, 5, "")]


def a_member_goes_back_later(story: Story) -> list[Row]:
    a = story.a
    a.process(range(6), 6)
    a.commit(6, 7)
    a.process([2], 8)
    story.goes_on([], 6)
    return [("rewind", "orders", 0, 2, 2, "")]


def the_position_of_before_is_kept(story: Story) -> list[Row]:
    story.h.write(6, at=5.6)
    story.goes_on([10, 11], 12)
    return [
        ("unseen", "orders", 0, 0, 9, ACT),
        ("wrong-start", "orders", 0, 10, 10, ACT),
    ]


def more_is_passed_over_than_the_position_of_before(story: Story) -> list[Row]:
    story.h.write(6, at=5.6)
    story.goes_on([11], 12)
    return [
        ("unseen", "orders", 0, 0, 9, ACT),
        ("unseen", "orders", 0, 10, 10, ""),
        ("wrong-start", "orders", 0, 11, 11, ACT),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        a_write_is_lost,
        a_write_of_another_partition_is_lost,
        a_record_is_passed_over,
        nobody_goes_on,
        a_commit_goes_back_later,
        a_member_goes_back_later,
        the_position_of_before_is_kept,
        more_is_passed_over_than_the_position_of_before,
    ],
    ids=lambda wrong: wrong.__name__,
)
def test_only_what_comes_of_it_is_permitted(tmp_path: Path, wrong: Callable[[Story], list[Row]]) -> None:
    story = Story(tmp_path)
    expected = wrong(story)
    assert told(story.h.seal()) == sorted([*expected, *LOST])


@pytest.mark.parametrize("kind", ["commit-ahead", "unseen", "lost-write", "commit-regression"])
def test_nobody_is_accused_where_what_the_harness_did_is_not_wholly_known(kind: str) -> None:
    lost = Damage("events", "history/events/harness.jsonl", "torn")
    assert certainty.missing_evidence(Anomaly(kind, "orders", 0), [lost]) == lost
