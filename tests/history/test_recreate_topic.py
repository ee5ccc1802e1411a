"""A topic that is deleted and made again: what comes of that is permitted, if the history tells of the act.

What is wrong with the topic that there is now, or elsewhere, is a violation all the same.

Both finders are asked, also with partitions cut into ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fencepost.checkers import certainty
from fencepost.checkers.facts import Bounds
from fencepost.checkers.promises import Commits, Delivery, Effects, Order, Ownership, Progress
from fencepost.checkers.tables.rows import Damage
from fencepost.model import Anomaly
from history.builder import HistoryBuilder, MemberTeller
from history.test_kernel_equals_oracle import agreed

A, WRITER = "member-0.1", "producer-0"
ACT = "declared act: recreate_topic"
GONE = "orders (deleted)"
PROMISED = {kind for p in (Commits, Delivery, Effects, Order, Ownership, Progress) for kind in p.kinds}
Row = tuple[str, str, int, int, int, str]  # kind, topic, partition, first and last offset, excuse


class Story:
    """Ten records of orders-0 before it is made again (4 to 5 s), eight of which are committed; then six others. As
    many of orders-1 as before."""

    def __init__(self, folder: Path, classic: bool = False, back: float = 6) -> None:
        """``back``: when the member is given records of the new one."""
        self.h = h = HistoryBuilder(folder, 2, classic=classic)
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
        self.back = back

    def goes_on(self, offsets: Iterable[int] = range(6), committed: int = 6) -> MemberTeller:
        """The member gets records of the new one, commits, and leaves."""
        self.a.process(offsets, self.back)
        self.a.commit(committed, self.back + 1)
        for tp in (0, 1):
            self.a.revoked(38, tp)
        self.a.close(39)
        return self.a


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
    assert certainty.doubt(Anomaly(kind, "orders", 0), [lost]) == lost
