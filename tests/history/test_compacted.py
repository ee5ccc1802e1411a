"""Compaction: what a later record of the same key has replaced is nobody's loss; what is missing otherwise still is.

Each story is told as of a log that brokers compact; both finders are asked, also with partitions cut into ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.counts import Bounds
from fencepost.checkers.tables import load
from fencepost.history import RecordState
from history.builder import TOPIC, HistoryBuilder
from history.test_kernel_equals_oracle import agreed
from history.test_kinds import A, B, Told

LOST = "producer-0"


def found_in(h: HistoryBuilder) -> list[Told]:
    found, facts = agreed(h.seal(), Bounds())
    assert not facts.failed
    return [(a.kind, a.cause, a.excuse, a.members, a.first_offset, a.last_offset, a.count) for a in found]


def consumed(h: HistoryBuilder, *gone: int, **options: Any) -> None:
    """A topic of ten records, of the keys 0, 1, 2, 0 and so on, that a member consumes; ``gone``: in the end."""
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(10), 2)
    a.commit(10, 16)
    a.revoked(38)
    a.close(39)
    h.keeps("compact", **options)
    for offset in gone:
        h.loses(offset)


def lost(*offsets: int, delivered: bool = True) -> list[Told]:
    first, last, count = min(offsets), max(offsets), len(offsets)
    rows: list[Told] = [("lost-write", "", "", (LOST,), first, last, count)]
    return [*([("delivered-then-lost", "", "", (A,), first, last, count)] if delivered else []), *rows]


@pytest.mark.parametrize("policies", [("compact",), ("compact", "delete")])
def test_what_a_later_record_of_its_key_replaced_is_nobodys_loss(tmp_path: Path, policies: tuple[str, ...]) -> None:
    h = HistoryBuilder(tmp_path)
    consumed(h, *range(7))
    h.keeps(*policies)
    assert found_in(h) == []


def test_the_latest_record_of_a_key_is(tmp_path: Path) -> None:
    """Those before it are not: whatever became of it, it had replaced them."""
    h = HistoryBuilder(tmp_path)
    consumed(h, 0, 2, 3, 5, 8)
    assert found_in(h) == lost(8)


def test_retention_deletes_beside_compaction(tmp_path: Path) -> None:
    """What was below where the log begins is gone for that; the latest of a key above it is not."""
    h = HistoryBuilder(tmp_path)
    consumed(h, *range(9))
    h.keeps("compact", "delete")
    h.log_starts[0] = 8
    assert found_in(h) == lost(8)


def test_of_a_log_that_is_not_compacted_all_is_lost(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    consumed(h, 0, 3)
    h.keeps("delete")
    assert found_in(h) == lost(0, 3)


def test_where_the_cleaner_does_not_run_nothing_is_compacted(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    consumed(h, 0, 3)
    h.settings["broker"]["log.cleaner.enable"] = "false"
    assert found_in(h) == lost(0, 3)


def test_another_partition_and_another_key_replace_nothing(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 2)
    consumed(h, 8)
    h.write(30, 1)
    assert found_in(h)[:2] == lost(8)


def test_another_record_at_its_offset_is_no_compaction(tmp_path: Path) -> None:
    """A log that lost its tail gives its offsets again."""
    h = HistoryBuilder(tmp_path)
    consumed(h)
    h.holds(3, writer=1, seq=0)
    assert found_in(h) == lost(3)


def aborted(h: HistoryBuilder) -> Iterable[Told]:
    """The later one was aborted with its transaction: it replaced nothing."""
    h.aborts(9)
    return lost(6)


def in_doubt(h: HistoryBuilder) -> Iterable[Told]:
    """Nobody knows whether the later one was written. It would be there: nothing but a later one takes it."""
    h.produced[9] = h.produced[9]._replace(outcome=2, offset=-1, acked_ns=0)
    h.loses(9)
    return lost(6)


def acknowledged(h: HistoryBuilder) -> Iterable[Told]:
    """The later one is lost: that it had replaced the other one is so all the same."""
    h.loses(9)
    return lost(9, delivered=False)


def not_sent_in_the_end(h: HistoryBuilder) -> Iterable[Told]:
    """Nobody had the answer to the later one, but a member got it."""
    h.produced[9] = h.produced[9]._replace(outcome=2, offset=-1, acked_ns=0)
    h.loses(9)
    h.members[0].deliver(9, 17)
    return [("delivered-then-lost", "", "", (A,), 9, 9, 1), ("unconsumed", "", "", (A,), 10, 10, 0)][:1]


@pytest.mark.parametrize("story", [aborted, in_doubt, acknowledged, not_sent_in_the_end], ids=lambda s: s.__name__)
def test_what_counts_as_a_later_record(tmp_path: Path, story: Callable[[HistoryBuilder], Iterable[Told]]) -> None:
    """Records 6 and 9 have one key; a member was given all but the latter."""
    h = HistoryBuilder(tmp_path)
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(9), 2)
    a.commit(10, 16)
    h.keeps("compact")
    for offset in (0, 3, 6):
        h.loses(offset)
    expected = list(story(h))
    a.revoked(38)
    a.close(39)
    assert found_in(h) == expected


def test_an_aborted_record_is_given_to_nobody_who_reads_what_is_committed(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    consumed(h)
    h.aborts(3)
    assert found_in(h) == [("aborted-read", "", "", (A,), 3, 3, 1)]


def test_a_record_that_nobody_sent_is_made_up_all_the_same(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    consumed(h, 3)
    h.members[0].rows[3].seq = 999
    assert found_in(h) == [("phantom", "", "", (A,), 3, 3, 1)]


@pytest.mark.parametrize("key", [b"0", b"1", None])
def test_a_tombstone_of_a_program_replaces_what_has_its_key(tmp_path: Path, key: bytes | None) -> None:
    """Record 9 has the key 0, and the tombstone comes after it; one of another key, or of none, does not."""
    h = HistoryBuilder(tmp_path)
    consumed(h, 0, 3, 6, 9)
    h.write_strange(key)
    found = [reported for reported in found_in(h) if reported[0] != "unconsumed"]
    assert found == ([] if key == b"0" else lost(9))


@pytest.mark.parametrize("stays_s", [5, 60])
def test_a_tombstone_that_a_member_got_goes_when_its_time_is_over(tmp_path: Path, stays_s: float) -> None:
    """It was written 38.5 s before the audit ended. What it had replaced was replaced, whatever became of it."""
    h = HistoryBuilder(tmp_path)
    h.write(10)
    gone = h.write_strange(b"0")
    a = h.member(0)
    a.assigned(1)
    a.process(range(11), 2)
    a.commit(11, 16)
    a.revoked(38)
    a.close(39)
    h.keeps("compact", tombstones_s=stays_s)
    for offset in (0, 3, 6, 9, gone):
        h.loses(offset)
    assert found_in(h) == ([] if stays_s == 5 else [("phantom", "", "", (A,), gone, gone, 1)])


def test_a_strange_record_that_was_replaced_is_no_phantom(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(3)
    former, _ = h.write_strange(b"else"), h.write_strange(b"else")
    a = h.member(0)
    a.assigned(1)
    a.process(range(5), 2)
    a.commit(5, 16)
    a.revoked(38)
    a.close(39)
    h.keeps("compact")
    h.loses(former)
    assert found_in(h) == []


@pytest.mark.parametrize("gone", [True, False])
def test_a_record_that_was_replaced_before_anybody_got_it(tmp_path: Path, gone: bool) -> None:
    """The group was down. Neither is it unseen, nor did anybody skip it, or begin in the wrong place; if it is there, a
    member that begins above it does all of that."""
    h = HistoryBuilder(tmp_path)
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(4), 2)
    a.commit(4, 3)
    a.die(4)
    a.evicted(9)
    b.assigned(10)
    b.process([6, *range(8, 10)], 11)
    b.commit(10, 16)
    b.revoked(38)
    b.close(39)
    h.keeps("compact")
    for offset in (4, 5, 7) if gone else ():
        h.loses(offset)
    h.write(3, at=30)  # what replaced them
    kinds = {reported[0] for reported in found_in(h)} - {"unconsumed", "stuck-partition"}
    assert kinds == (set() if gone else {"unseen", "poll-skip", "wrong-start", "commit-ahead"})


@pytest.mark.parametrize("compacted", [True, False])
def test_what_was_replaced_is_done_by_its_former_owner_alone(tmp_path: Path, compacted: bool) -> None:
    """A member is frozen in the middle of record 3; the next owner goes on with record 6 of its key, as 3 is gone."""
    h = HistoryBuilder(tmp_path)
    h.write(9)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(3), 2)
    a.commit(3, 3)
    (row,) = a.poll([3], 3.5)
    row.begin(3.6)
    a.pause(4, 12)
    a.evicted(9)
    b.assigned(10)
    if not compacted:
        b.poll([3], 10.5)  # and dropped
    b.process(range(4, 9), 11)
    row.end(12.5, RecordState.DONE)
    a.lost(12.6)
    b.commit(9, 16)
    b.revoked(38)
    a.close(38)
    b.close(39)
    if compacted:
        h.keeps("compact")
        h.loses(3)
    found = [reported for reported in found_in(h) if reported[0] == "key-order"]
    assert found == [("key-order", "", "compacted" if compacted else "", (B, A), 6, 6, 1)]


def test_what_was_finished_before_it_was_replaced_counts_as_judged(tmp_path: Path) -> None:
    """Of a log that keeps three records of ten, ten were judged; one that nobody got was not."""
    h = HistoryBuilder(tmp_path)
    consumed(h, *range(1, 7))
    h.produced.append(h.produced[0]._replace(offset=0))
    _, facts = agreed(h.seal(), Bounds())
    assert (facts.visible, facts.judged) == (4, 10)


def test_a_run_of_before_is_judged_by_what_its_scenario_asks_for(tmp_path: Path) -> None:
    """By the names that topics have on an attached cluster, too, whose cleaner runs without being asked for."""
    h = HistoryBuilder(tmp_path)
    consumed(h, *range(7))
    h.settings = {}
    asked = {"topics": [{"name": TOPIC, "config": {"cleanup.policy": "compact"}}]}
    run = h.seal()
    tables = load(run)
    for cluster, compacted in (
        ({}, True),
        ({"broker_config": {}}, False),
        (cleaner(True), True),
        (cleaner("no"), False),
    ):
        h.run.write_json(
            "scenario.json", {**tables.scenario, "scenario": {**tables.asked, **asked}, "cluster": cluster}
        )
        assert bool(load(run).compacted) is compacted, cluster
    entries = h.run.read_json("history/partitions.json")["partitions"]
    named = [{**entry, "topic": f"fencepost-0123abcd-{TOPIC}"} for entry in entries]
    h.run.write_json("scenario.json", {**tables.scenario, "scenario": {**tables.asked, **asked}})
    h.run.write_json("history/partitions.json", {"partitions": named})
    assert load(run).compacted


def cleaner(enabled: object) -> dict[str, Any]:
    return {"broker_config": {"log.cleaner.enable": enabled}}


def test_settings_that_are_damaged_are_said_to_be(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    consumed(h)
    run = h.seal()
    (run / "history" / "settings.json").write_text('{"format_version": 1, "topics": 7}')
    assert {damage.part for damage in load(run).damage} == {"partitions"}
    (run / "history" / "settings.json").unlink()
    assert {damage.part for damage in load(run).damage} == {"partitions"}
