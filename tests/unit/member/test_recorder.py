"""The recorder: what it writes, how it goes on in new segments, and what it lets other threads do."""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections import Counter
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost_member.recording.recorder import MemberLane, Recorder
from fencepost_member.recording.segments import ABORTED, FAILED, PARKED, UNKNOWN, read_counts

ACTOR = "member-2.1"


def deliver(lane: MemberLane, count: int, tp: int = 3) -> list[int]:
    return [lane.delivered(tp, 100 + n, 7 * n, 1, n, 0, n // 10, n % 10) for n in range(count)]


def records(directory: Path) -> np.ndarray[Any, Any]:
    segments, none = read_segments(directory)
    assert not none
    assert all(not segment.damage for segment in segments)
    return np.concatenate([segment.records for segment in segments])


def mapped_segments(directory: Path) -> int:
    return len({line for line in Path("/proc/self/maps").read_text().splitlines() if f"{directory}/" in line})


def test_a_record_is_found_with_every_field_and_its_times_in_order(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR).lane()
    index = lane.delivered(3, 2**60, -(2**63), 5, 2**62, 4, 2**40, 9)
    lane.begin(index)
    lane.done(index)
    (row,) = records(tmp_path)
    found = {name: row[name].item() for name in row.dtype.names}
    times = [found.pop(name) for name in ("delivered_ns", "begin_ns", "done_ns")]
    assert times == sorted(times)
    assert times[0] > 0
    assert found == {
        "tp": 3,
        "offset": 2**60,
        "key": -(2**63),
        "writer": 5,
        "seq": 2**62,
        "interval": 4,
        "poll": 2**40,
        "position": 9,
        "ord": 0,
        "thread": 0,
        "outcome": 0,
        "commit": 0xA5,
    }


def test_how_far_a_record_got_is_told_by_its_times_and_outcome(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR).lane()
    _, begun, done, parked, failed = deliver(lane, 5)
    for index in (begun, done, parked, failed):
        lane.begin(index)
    lane.done(done)
    lane.parked(parked)
    lane.failed(failed)
    rows = records(tmp_path)
    assert (rows["begin_ns"] != 0).tolist() == [False, True, True, True, True]
    assert (rows["done_ns"] != 0).tolist() == [False, False, True, True, True]
    assert rows["outcome"].tolist() == [0, 0, 0, PARKED, FAILED]


def test_a_producers_sends_end_acknowledged_failed_unknown_aborted_or_not_at_all(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, "producer-0").producer_lane()
    indices = [lane.sent(2, 10 + n, 0, n) for n in range(5)]
    lane.acked(indices[0], 4711)
    lane.failed(indices[1])
    lane.unknown(indices[2])
    lane.aborted(indices[3])
    rows = records(tmp_path)
    assert rows["offset"].tolist() == [4711, 0, 0, 0, 0]
    assert (rows["acked_ns"] >= rows["sent_ns"]).tolist() == [True, True, True, True, False]
    assert rows["outcome"].tolist() == [0, FAILED, UNKNOWN, ABORTED, 0]
    assert rows["key"].tolist() == [10, 11, 12, 13, 14]


def test_a_lane_goes_on_in_a_new_segment_when_one_is_full(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=4).lane()
    for index in deliver(lane, 10):
        lane.begin(index)
        lane.done(index)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{ACTOR}.{n}.seg" for n in range(3)]
    assert records(tmp_path)["ord"].tolist() == list(range(10))
    assert records(tmp_path)["done_ns"].all()


def test_records_of_old_segments_are_ended_in_place(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=4).lane()
    indices = deliver(lane, 40)
    for index in reversed(indices):
        lane.begin(index)
        lane.parked(index)
    rows = records(tmp_path)
    assert rows["offset"].tolist() == list(range(100, 140))
    assert (rows["done_ns"] > rows["begin_ns"]).all()
    assert (np.diff(rows["begin_ns"]) < 0).all()
    assert set(rows["outcome"].tolist()) == {PARKED}


def test_old_segments_are_let_go_only_when_all_their_records_have_ended(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=4).lane()
    straggler = deliver(lane, 1)[0]
    for _ in range(200):
        index = deliver(lane, 1)[0]
        lane.done(index)
    assert len(list(tmp_path.iterdir())) > 50
    assert mapped_segments(tmp_path) <= 4  # the straggler's, the present one, the one before it
    lane.done(straggler)
    assert records(tmp_path)["done_ns"].all()


def test_ending_a_record_again_after_its_segment_was_let_go_changes_nothing(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=2).lane()
    for index in (indices := deliver(lane, 2)):
        lane.done(index)
    before = (tmp_path / f"{ACTOR}.0.seg").read_bytes()
    deliver(lane, 6)
    lane.done(indices[0])
    lane.failed(indices[1])
    assert (tmp_path / f"{ACTOR}.0.seg").read_bytes() == before


def test_ord_counts_a_partition_over_all_lanes_without_a_hole(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, ACTOR, capacity=500)
    threads = [threading.Thread(target=lambda: deliver(recorder.lane(), 2000, tp=1)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    rows = records(tmp_path)
    assert sorted(rows["ord"].tolist()) == list(range(8000))
    segments, _ = read_segments(tmp_path)
    assert Counter(segment.header.thread for segment in segments) == dict.fromkeys(range(4), 4)


def test_other_threads_may_end_records_while_the_lane_goes_on(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=64).lane()
    queue: SimpleQueue[int | None] = SimpleQueue()

    def work() -> None:
        for index in iter(queue.get, None):
            lane.begin(index)
            lane.done(index)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for n in range(5_000):
        queue.put(lane.delivered(0, n, n, 0, n, 0, n, 0))
    for _ in workers:
        queue.put(None)
    for worker in workers:
        worker.join(60)
    rows = records(tmp_path)
    assert rows["offset"].tolist() == list(range(5_000))
    assert (rows["done_ns"] >= rows["begin_ns"]).all()
    assert (rows["begin_ns"] >= rows["delivered_ns"]).all()


@pytest.mark.parametrize("recorded", [0, 1, 3, 4, 5, 8])
def test_counts_are_there_while_it_records(tmp_path: Path, recorded: int) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=4).lane()
    for index in deliver(lane, recorded)[1:]:
        lane.done(index)
    counts = [read_counts(path) for path in tmp_path.iterdir()]
    assert sum(count.recorded for count in counts) == recorded
    assert sum(count.finished for count in counts) == max(0, recorded - 1)


def test_what_is_no_segment_has_no_counts(tmp_path: Path) -> None:
    (tmp_path / "x.seg").write_bytes(b"hello" * 2000)
    with pytest.raises(ValueError, match="this is not a segment"):
        read_counts(tmp_path / "x.seg")


@pytest.mark.parametrize("actor", ["", "../member", "a b", "member\n", "ü", "m" * 101])
def test_an_actor_that_is_no_file_name_is_refused(tmp_path: Path, actor: str) -> None:
    with pytest.raises(ValueError, match="as an actor's name, found"):
        Recorder(tmp_path, actor)


@pytest.mark.parametrize("capacity", [0, -1, 10**9])
def test_a_capacity_that_does_not_fit_is_refused(tmp_path: Path, capacity: int) -> None:
    with pytest.raises(ValueError, match=r"expected 1 to \d+ records as a segment's capacity, found"):
        Recorder(tmp_path, ACTOR, capacity)


def test_a_second_life_under_the_same_name_overwrites_nothing(tmp_path: Path) -> None:
    deliver(Recorder(tmp_path, ACTOR).lane(), 3)
    with pytest.raises(FileExistsError, match="a new incarnation needs a new name"):
        Recorder(tmp_path, ACTOR).lane()
    assert len(records(tmp_path)) == 3


def test_a_full_disk_is_told_before_a_record_is_lost_and_leaves_nothing_behind(tmp_path: Path) -> None:
    lane = Recorder(tmp_path, ACTOR, capacity=4).lane()
    indices = deliver(lane, 4)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4200, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as refused:
            deliver(lane, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == [f"{ACTOR}.0.seg"]
    lane.done(indices[0])
    deliver(lane, 1)
    assert records(tmp_path)["ord"].tolist() == list(range(5))


def test_all_the_room_of_a_segment_is_taken_at_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "this file system cannot")

    Recorder(tmp_path, "member-0.1").lane()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    Recorder(tmp_path, "member-1.1").lane()
    monkeypatch.delattr(os, "posix_fallocate")
    Recorder(tmp_path, "member-2.1").lane()
    sizes = [path.stat() for path in tmp_path.iterdir()]
    assert len({size.st_size for size in sizes}) == 1
    assert all(512 * size.st_blocks >= size.st_size > 20_000_000 for size in sizes)


def test_a_closed_lane_takes_no_more_records(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, ACTOR)
    lane = recorder.lane()
    index = deliver(lane, 1)[0]
    recorder.close()
    recorder.close()
    with pytest.raises((TypeError, ValueError)):
        deliver(lane, 1)
    with pytest.raises(ValueError, match="released"):
        lane.done(index)
    assert len(records(tmp_path)) == 1
    assert mapped_segments(tmp_path) == 0
