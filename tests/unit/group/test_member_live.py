"""The live view of a member, from its event file while it is being written."""

from __future__ import annotations

import pytest

from fencepost.group.event_tail import EventTail, RecordCounts, count_records, last_poll_ns
from fencepost.model import TopicPartition
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import Recorder

ORDERS = [TopicPartition("orders", p) for p in range(3)]


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "member-0.1.jsonl", "member-0.1")
    yield log
    log.close()


@pytest.fixture
def live(tmp_path):
    return EventTail(tmp_path / "member-0.1.jsonl")


def test_nothing_is_known_of_a_member_that_has_told_nothing(tmp_path):
    live = EventTail(tmp_path / "nobody.jsonl")
    live.refresh()
    assert (live.started, live.owned) == (None, frozenset())


def test_a_partition_is_owned_from_the_end_of_its_assigned_callback_to_the_begin_of_its_revoked_one(log, live):
    event = log.begin("assigned", partitions=ORDERS, generation=4, member_id="m")
    live.refresh()
    assert live.owned == frozenset()
    log.end(event)
    live.refresh()
    assert live.owned == frozenset(ORDERS)
    event = log.begin("revoked", partitions=ORDERS[:1], generation=4, member_id="m")
    live.refresh()
    assert live.owned == frozenset(ORDERS[1:])
    log.end(event)
    log.note("lost", partitions=ORDERS[1:2])
    live.refresh()
    assert live.owned == frozenset(ORDERS[2:])


def test_a_member_goes_by_the_id_that_it_told_last(log, live):
    log.note("started", detail={"pid": 1})
    live.refresh()
    assert live.member_id == ""
    for member_id in ("m", "n", None):
        log.note("assigned", partitions=ORDERS, member_id=member_id)
    live.refresh()
    assert live.member_id == "n"


def test_errors_are_counted_and_the_one_that_ended_the_client_is_named(log, live):
    log.note("error", error="NETWORK_EXCEPTION", detail={"fatal": False})
    log.note("error", error="FENCED_INSTANCE_ID", detail={"fatal": True})
    log.note("started", detail={"pid": 1})
    live.refresh()
    assert live.errors == {"NETWORK_EXCEPTION": 1, "FENCED_INSTANCE_ID": 1}
    assert (live.fatal, live.started) == ("FENCED_INSTANCE_ID", {"pid": 1})


def test_a_member_that_ended_cleanly_owns_nothing(log, live):
    log.note("assigned", partitions=ORDERS)
    live.refresh()
    assert live.owned == frozenset(ORDERS)
    log.note("closed")
    live.refresh()
    assert live.owned == frozenset()


def test_a_line_that_is_no_event_is_passed_over_and_the_next_one_is_read(log, live, tmp_path):
    with (tmp_path / "member-0.1.jsonl").open("a") as file:
        file.write("nonsense\n")
    log.note("started", detail={"pid": 1})
    live.refresh()
    assert live.started == {"pid": 1}


def test_records_are_counted_over_all_lives_of_members_and_producers(tmp_path):
    for actor in ("member-0.1", "member-0.2"):
        lane = Recorder(tmp_path, actor, capacity=8).lane()
        for offset in range(3):
            lane.done(lane.delivered(0, offset, 0, 0, offset, 0, 0, offset))
        lane.delivered(0, 3, 0, 0, 3, 0, 0, 3)
    sends = Recorder(tmp_path, "producer-0", capacity=8).producer_lane()
    sends.acked(sends.sent(0, 0, 0, 0), 0)
    sends.sent(0, 0, 0, 1)
    (tmp_path / "member-9.1.0.seg").write_bytes(b"damaged")
    assert count_records(tmp_path) == RecordCounts(sent=2, acknowledged=1, delivered=8, processed=6)


def test_the_last_poll_of_an_actor_is_found_in_whichever_of_its_segments_was_the_current_one(tmp_path):
    lane = Recorder(tmp_path, "member-2.1", capacity=2).lane()
    assert last_poll_ns(tmp_path, "member-2.1") == 0
    moments = []
    for offset in range(5):
        moments.append(lane.polled())
        lane.delivered(0, offset, 0, 0, offset, 0, 0, 0)
    assert last_poll_ns(tmp_path, "member-2.1") == moments[-1]
    lane.delivered(0, 5, 0, 0, 5, 0, 0, 1)
    lane.delivered(0, 6, 0, 0, 6, 0, 0, 2)  # begins another segment, in which there was no poll yet
    Recorder(tmp_path, "member-2.10").lane().polled()
    (tmp_path / "member-2.1.9.seg").write_bytes(b"damaged")
    assert last_poll_ns(tmp_path, "member-2.1") == moments[-1]


def test_what_was_told_is_kept_by_kind_the_last_line_of_each_but_for_what_comes_with_records(log, live):
    stall = log.begin("stall", partitions=[("orders", 0, 7)])
    log.note("commit")
    live.refresh()
    assert [e["end_ns"] for e in live.reported["stall"].values()] == [0]
    log.end(stall)
    log.note("stall", begin_ns=1)
    live.refresh()
    assert [e["end_ns"] > 0 for e in live.reported["stall"].values()] == [True, True]
    assert not live.reported["commit"]
