"""Groups whose members begin at the end of the log without a committed offset: what they skip then is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers import Delivery
from fencepost.checkers.counts import Bounds
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import Partition
from fencepost.checkers.tables.starts_at_end import started_ns
from fencepost.model import TopicPartition
from history.builder import HistoryBuilder, MemberTeller
from history.test_kernel_equals_oracle import agreed

LATEST = {"auto.offset.reset": "latest"}
PARTITIONS = [(0, "orders (deleted)", True), (1, "orders", False), (2, "payments", False)]
B = "member-1.1"
Told = tuple[str, str, int, int, int]


def lost(h: HistoryBuilder) -> list[Told]:
    """What both finders call lost or not consumed: kind, cause, first and last offset, count."""
    found, _ = agreed(h.seal(), Bounds())
    kinds = ("unseen", "unconsumed")
    return [(a.kind, a.cause, a.first_offset, a.last_offset, a.count) for a in found if a.kind in kinds]


def all_down(
    folder: Path, policy: str = "latest", *, committed: int | None = None, sent: float = 5
) -> tuple[HistoryBuilder, MemberTeller]:
    """An idle partition: its owner dies, four records are written, and another member owns it from 10 s on."""
    h = HistoryBuilder(folder, config={"auto.offset.reset": policy})
    h.phases = {**h.phases, "warm-up": (0.0, 2.0)}
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    if committed is not None:
        a.commit(committed, 2.5)
    a.die(3)
    a.evicted(9)
    h.write(4, at=sent)
    b.assigned(10)
    h.write(3, at=11)
    return h, b


def ends(b: MemberTeller, offsets: range) -> None:
    b.process(offsets, 12)
    b.commit(7, 13)
    b.revoked(38)
    b.close(39)


def test_records_of_an_idle_partition_are_skipped_while_all_members_are_down(tmp_path: Path) -> None:
    h, b = all_down(tmp_path)
    ends(b, range(4, 7))
    assert lost(h) == [("unseen", "latest", 0, 3, 4)]
    assert Delivery().severity("unseen", "latest", "") == "violation"


def test_nothing_is_lost_where_the_member_began_at_the_first_record(tmp_path: Path) -> None:
    h, b = all_down(tmp_path, "earliest")
    ends(b, range(7))
    assert lost(h) == []


def test_a_member_that_had_a_committed_offset_skipped_the_records_itself(tmp_path: Path) -> None:
    h, b = all_down(tmp_path, committed=0)
    ends(b, range(4, 7))
    assert lost(h) == [("unseen", "skipped", 0, 3, 4)]


@pytest.mark.parametrize("sent", [1.9, 2.1, 6.0])
def test_an_owner_that_receives_records_had_its_position_only_by_the_first_one(tmp_path: Path, sent: float) -> None:
    """Nobody knows when it asked for the end of the partition."""
    h = HistoryBuilder(tmp_path, config=LATEST)
    h.phases = {**h.phases, "warm-up": (0.0, 2.0)}
    h.write(3, at=sent)
    h.write(3, at=sent + 0.1)
    a = h.member(0)
    a.assigned(1)
    a.process(range(3, 6), 7)
    a.commit(6, 8)
    a.revoked(38)
    a.close(39)
    assert lost(h) == []


@pytest.mark.parametrize("sent", [3.9, 4.1])
def test_an_owner_has_two_seconds_to_ask_for_its_position(tmp_path: Path, sent: float) -> None:
    h, b = all_down(tmp_path, sent=sent)
    ends(b, range(4, 7))
    assert lost(h) == ([("unseen", "latest", 0, 3, 4)] if sent > 4 else [])


def test_a_partition_that_is_added_starts_with_its_first_record(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, config=LATEST)
    h.phases = {**h.phases, "warm-up": (0.0, 2.0)}
    h.write(2, at=2.5)
    h.write(3, at=4)
    a = h.member(0)
    a.assigned(3)
    a.process(range(2, 5), 5)
    a.commit(5, 8)
    a.revoked(38)
    a.close(39)
    assert lost(h) == [("unseen", "latest", 0, 1, 2)]


def test_a_member_that_commits_the_end_without_a_record_skipped_what_is_below(tmp_path: Path) -> None:
    """Clients in Python commit the position of a partition from which they received nothing."""
    h, b = all_down(tmp_path)
    h.workload = {"type": "own_program"}
    b.commit(4, 10.5)
    ends(b, range(4, 7))
    assert lost(h) == [("unseen", "latest", 0, 3, 4)]
    assert not [found for found in load(h.run.path).damage if found.part == "delivered"]


def test_a_recreated_partition_begins_where_positions_in_its_predecessor_lead(tmp_path: Path) -> None:
    names = [Partition(n, TopicPartition(topic, 0), 0, -1, gone) for n, topic, gone in PARTITIONS]
    assert started_ns(names, (), (), 7) == {2: 7}


def test_a_record_below_what_was_delivered_first_is_of_the_group(tmp_path: Path) -> None:
    """The first member received records that were sent during the warm-up, and died before it committed."""
    h = HistoryBuilder(tmp_path, config=LATEST)
    h.phases = {**h.phases, "warm-up": (0.0, 2.0)}
    h.write(6, at=1.5)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(2), 1.8)
    a.die(3)
    a.evicted(9)
    b.assigned(10)
    b.process(range(4, 6), 11)
    b.commit(6, 12)
    b.revoked(38)
    b.close(39)
    assert lost(h) == [("unseen", "latest", 2, 3, 2)]


def test_records_that_nobody_committed_past_are_not_consumed(tmp_path: Path) -> None:
    h, b = all_down(tmp_path)
    b.revoked(38)
    b.close(39)
    assert lost(h) == [("unconsumed", "", 0, 6, 7)]


def test_a_group_that_starts_at_the_beginning_does_not_ask_when_records_were_sent(tmp_path: Path) -> None:
    h, b = all_down(tmp_path, "earliest")
    ends(b, range(7))
    assert load(h.seal()).first_written == {}


def test_without_an_end_of_the_warm_up_only_deliveries_show_where_the_group_starts(tmp_path: Path) -> None:
    h, b = all_down(tmp_path)
    h.phases = {name: times for name, times in h.phases.items() if name != "warm-up"}
    ends(b, range(4, 7))
    assert lost(h) == []
