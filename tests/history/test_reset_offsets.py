"""What follows from offsets that an administrator reset is a violation, unless the history tells of that act.

Both finders are asked, also with partitions cut into ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fencepost.checkers import certainty
from fencepost.checkers.counts import Bounds
from fencepost.checkers.promises import Commits, Delivery, Effects, Order, Parked
from fencepost.checkers.tables.rows import Damage
from fencepost.model import Anomaly
from history.builder import HistoryBuilder
from history.test_kernel_equals_oracle import agreed

A, B = "member-0.1", "member-1.1"
OTHER, BEFORE, AFTER = "of another partition", "before", "only after it"
ACT = "declared act: reset_offsets"
Row = tuple[str, str, tuple[str, ...], int, int, str]  # kind, cause, members, first and last offset, other excuse


def to_the_begin(h: HistoryBuilder, act: Callable[[], None]) -> Iterable[Row]:
    """Everything is processed twice: what a member gave up cleanly, too, and what is in a store."""
    a, b = h.member(0), h.member(1)
    b.assigned(1)
    b.process(range(2), 1.5)
    b.commit(2, 1.7)
    b.revoked(1.8)
    a.assigned(2)
    a.process(range(2, 6), 2.5)
    a.effect(5, 2.6, seq=0)
    a.effect(4, 2.6, seq=0, kind="dead-letter")
    a.commit(6, 3)
    a.lost(4)
    act()
    h.accepts(0, 4.5)
    a.assigned(5, generation=2)
    a.process(range(10), 6, each=0.3)
    a.effect(5, 6.1, seq=1)
    a.effect(4, 6.1, seq=1, kind="dead-letter")
    a.commit(10, 9.5, generation=2)
    a.revoked(38)
    a.close(39)
    return [
        ("commit-regression", "", (), 0, 0, ""),
        ("redelivery", "", (A,), 2, 5, "former owner lost it"),
        ("avoidable-redelivery", "", (B, A), 0, 1, ""),
        ("duplicate-effect", "", (A, A), 5, 5, ""),
        ("dead-letter-twice", "", (A, A), 4, 4, ""),
    ]


def to_the_end(h: HistoryBuilder, act: Callable[[], None]) -> Iterable[Row]:
    """Nobody is given two records; one that a member has in its hands as it wakes is done after the next of its key."""
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(5), 2)
    a.commit(5, 3)
    (woken,) = a.poll([5], 3.5)
    act()
    h.accepts(8, 4.5)
    b.assigned(5, generation=2)
    b.process([8, 9], 6)
    b.commit(10, 7, generation=2)
    woken.begin(3.6).end(8)
    a.lost(8.5)
    b.revoked(38)
    b.close(39)
    return [("unseen", "skipped", (B,), 6, 7, ""), ("key-order", "", (B, A), 8, 8, "")]


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("declared", [BEFORE, AFTER, OTHER])
@pytest.mark.parametrize("story", [to_the_begin, to_the_end], ids=lambda story: story.__name__)
def test_only_the_act_on_that_partition_excuses(
    tmp_path: Path, story: Callable[[HistoryBuilder, Callable[[], None]], Iterable[Row]], declared: str, classic: bool
) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=classic)
    h.write(10)
    at, tp = {BEFORE: (4.4, 0), AFTER: (7.5, 0), OTHER: (4.4, 1)}[declared]
    expected = story(h, lambda: h.act("reset_offsets", at, tp))
    found, _ = agreed(h.seal(), Bounds())
    promised = (Commits, Delivery, Effects, Order, Parked)
    kinds = {kind for promise in promised for kind in promise.kinds}
    reported = [(a.kind, a.cause, a.members, a.first_offset, a.last_offset, a.excuse) for a in found if a.kind in kinds]
    whole = ("unseen",)  # of a record that nobody gets there is no moment that could be before the act
    assert sorted(reported) == sorted(
        (*row[:5], ACT if declared == BEFORE or (declared == AFTER and row[0] in whole) else row[5]) for row in expected
    )


@pytest.mark.parametrize(
    "kind",
    [
        *("commit-regression", "redelivery", "avoidable-redelivery", "redelivery-below-commit", "unseen", "key-order"),
        *("duplicate-effect", "dead-letter-twice"),
    ],
)
def test_nobody_is_accused_where_what_the_harness_did_is_not_wholly_known(kind: str) -> None:
    lost = Damage("events", "history/events/harness.jsonl", "torn")
    assert certainty.missing_evidence(Anomaly(kind, "orders", 0), [lost]) == lost
