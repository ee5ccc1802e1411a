"""The questions of the contract of members: a history that is right, and a record of it changed for each question."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from cluster.contract import MS, QUESTIONS, History, Row, complaints

TP0, TP1 = ("orders", 0), ("orders", 1)
ZOMBIE, BOUNCED = "member-1.1", "member-0.1"


def event(kind: str, actor: str, at: float, partition: int | None = None, **more: Any) -> Row:
    """One row of the table of events; ``number``: of the interval."""
    detail = {"intervals": {f"orders-{partition}": more.pop("number", 0)}, **more.pop("detail", {})}
    row = {"kind": kind, "actor": actor, "begin_ns": at * MS, "end_ns": (at + 1) * MS, "error": None, "outcome": None}
    topic = None if partition is None else "orders"
    return {**row, "topic": topic, "partition": partition, "offset": -1, "detail": detail, **more}


def delivered(actor: str, at: float, partition: int, offsets: range, number: int = 0) -> list[Row]:
    """What a poll returned, which is done at once."""
    row = {"actor": actor, "tp": ("orders", partition), "interval": number, "key": 1, "writer": 0}
    times = {"delivered_ns": at * MS, "done_ns": (at + 1) * MS}
    return [{**row, **times, "offset": o, "ord": 100 * number + o, "seq": 10 * partition + o} for o in offsets]


def commit(actor: str, at: float, partition: int, offset: int, **more: Any) -> Row:
    """As a member tells it."""
    return event("commit", actor, at, partition, offset=offset, **{"outcome": "ok", **more})


def committed(at: float, partition: int, offset: int) -> Row:
    """As the coordinator has it."""
    place = {"topic": "orders", "partition": partition, "committed": offset}
    return {"type": "commit", "at_ns": (at + 1) * MS, "deleted": False, **place}


def round_(at: float, *members: tuple[str, str, list[int]]) -> Row:
    """A generation: of each member its id, its name, and its partitions."""
    rows = [{"member_id": i, "client_id": name, "assignment": {"orders": tps}} for i, name, tps in members]
    agreed = "range" if members else None
    return {"type": "classic-group", "at_ns": at * MS, "deleted": False, "protocol": agreed, "members": rows}


def request(api: str, at: float, member: str, name: str, **more: Any) -> Row:
    """As a broker logged it."""
    head = {"api": api, "start_ns": at * MS, "member_id": member, "client_id": name}
    return {**head, "generation": 1, "error": None, "offsets": None, **more}


def right() -> History:
    """``member-1`` is paused past its session and comes back; then ``member-0`` is asked to end, then ``member-1``."""
    said = {"client": "confluent-kafka", "client_version": "2.16.1", "protocol": "eager"}
    ended = {"exit_code": 0, "how": "closed"}
    events = [
        *(event("launched", actor, 0) for actor in (BOUNCED, ZOMBIE)),
        *(event("started", actor, 1, detail=said) for actor in (BOUNCED, ZOMBIE)),
        event("assigned", BOUNCED, 10, 0),
        event("assigned", ZOMBIE, 10, 1),
        commit(BOUNCED, 110, 0, 2),
        commit(ZOMBIE, 110, 1, 2),
        event("fault", "harness", 1000, detail={"fault": "pause", "members": [ZOMBIE]}),
        event("revoked", BOUNCED, 7000, 0),
        event("assigned", BOUNCED, 7010, 0, number=1),
        event("assigned", BOUNCED, 7010, 1),
        commit(BOUNCED, 7110, 1, 4),
        commit(ZOMBIE, 10_000, 1, 2, outcome="fail", error="UNKNOWN_MEMBER_ID"),
        event("lost", ZOMBIE, 10_020, 1),
        event("revoked", BOUNCED, 10_490, 0, number=1),
        event("revoked", BOUNCED, 10_490, 1),
        event("assigned", BOUNCED, 10_510, 0, number=2),
        event("assigned", ZOMBIE, 10_520, 1, number=1),
        commit(ZOMBIE, 10_610, 1, 5),
        event("fault", "harness", 20_000, detail={"fault": "bounce", "members": [BOUNCED]}),
        event("closed", BOUNCED, 20_010),
        event("ended", BOUNCED, 20_020, detail=ended),
        event("revoked", ZOMBIE, 20_015, 1, number=1),
        event("assigned", ZOMBIE, 20_030, 0),
        event("assigned", ZOMBIE, 20_030, 1, number=2),
        commit(ZOMBIE, 20_110, 0, 3),
        event("closed", ZOMBIE, 40_000),
        event("ended", ZOMBIE, 40_010, detail=ended),
    ]
    brought = [
        *delivered(BOUNCED, 100, 0, range(2)),
        *delivered(ZOMBIE, 100, 1, range(2)),
        *delivered(BOUNCED, 7100, 1, range(2, 4)),
        *delivered(ZOMBIE, 10_600, 1, range(4, 5), 1),
        *delivered(ZOMBIE, 20_100, 0, range(2, 3)),
    ]
    log = [{name: row[name] for name in ("tp", "offset", "key", "writer", "seq")} for row in brought]
    records = [
        round_(5, ("a", BOUNCED, [0]), ("b", ZOMBIE, [1])),
        committed(110, 0, 2),
        committed(110, 1, 2),
        round_(7005, ("a", BOUNCED, [0, 1])),
        committed(7110, 1, 4),
        round_(10_500, ("a", BOUNCED, [0]), ("c", ZOMBIE, [1])),
        committed(10_610, 1, 5),
        round_(20_020, ("c", ZOMBIE, [0, 1])),
        committed(20_110, 0, 3),
        round_(39_990),
    ]
    requests = [
        request("OFFSET_COMMIT", 110, "b", ZOMBIE, offsets=[["orders", 1, 2, None]]),
        request("OFFSET_COMMIT", 10_000, "b", ZOMBIE, offsets=[["orders", 1, 2, "UNKNOWN_MEMBER_ID"]]),
        request("LEAVE_GROUP", 20_005, "a", BOUNCED),
        request("LEAVE_GROUP", 39_990, "c", ZOMBIE),
    ]
    return History("confluent-kafka", "2.16", "eager", "range", events, brought, log, records, requests)


def one(rows: list[Row], **wanted: Any) -> Row:
    """The last row of these fields."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())][-1]


def without(rows: list[Row], **wanted: Any) -> None:
    rows.remove(one(rows, **wanted))


# What was changed -> the question that has to complain of it.
DOCTORED: list[tuple[str, str, Callable[[History], object]]] = [
    (
        "another client",
        "says_who_it_is",
        lambda h: one(h.events, kind="started")["detail"].update(client="kafka-python"),
    ),
    ("another release", "says_who_it_is", lambda h: one(h.events, kind="started")["detail"].update(client_version="1")),
    ("no start", "says_who_it_is", lambda h: without(h.events, kind="started")),
    (
        "another assignor",
        "agrees_on_the_assignor_that_it_is_told",
        lambda h: one(h.records, at_ns=7005 * MS).update(protocol="roundrobin"),
    ),
    (
        "no assignor",
        "agrees_on_the_assignor_that_it_is_told",
        lambda h: [record.update(protocol="") for record in h.records if record["type"] == "classic-group"],
    ),
    (
        "an assigned callback that comes late",
        "is_assigned_before_it_is_given_records",
        lambda h: one(h.events, kind="assigned", begin_ns=10 * MS).update(begin_ns=101 * MS),
    ),
    (
        "an assigned callback that never comes",
        "is_assigned_before_it_is_given_records",
        lambda h: without(h.events, kind="assigned", actor=ZOMBIE, partition=0),
    ),
    ("another record", "is_given_what_was_written", lambda h: h.delivered[0].update(seq=99)),
    ("no record", "is_given_what_was_written", lambda h: h.delivered.clear()),
    ("a record twice", "is_given_each_record_in_its_order", lambda h: h.delivered.append(h.delivered[0])),
    (
        "a record that is left out",
        "is_given_each_record_in_its_order",
        lambda h: h.log.append({**h.log[0], "offset": 0.5}),
    ),
    (
        "two records the other way round",
        "is_given_each_record_in_its_order",
        lambda h: h.delivered[0].update(ord=5),
    ),
    (
        "a commit that nobody has",
        "tells_the_commits_that_the_coordinator_has",
        lambda h: without(h.records, type="commit"),
    ),
    (
        "a commit that nobody tells",
        "tells_the_commits_that_the_coordinator_has",
        lambda h: without(h.events, kind="commit"),
    ),
    (
        "a refused commit that was accepted",
        "tells_the_commits_that_the_coordinator_has",
        lambda h: one(h.events, kind="commit").update(outcome="fail"),
    ),
    (
        "a commit of what it was not given",
        "commits_no_more_than_it_has_done",
        lambda h: one(h.events, kind="commit").update(offset=4),
    ),
    (
        "a commit of what is not done",
        "commits_no_more_than_it_has_done",
        lambda h: one(h.delivered, actor=ZOMBIE).update(done_ns=0),
    ),
    (
        "a commit below the last one",
        "never_commits_less_than_there_is",
        lambda h: h.records.append(committed(30_000, 0, 1)),
    ),
    (
        "a start past what was committed",
        "begins_where_the_last_one_committed",
        lambda h: one(h.delivered, actor=ZOMBIE, tp=TP0).update(offset=3),
    ),
    (
        "a start below what was committed",
        "begins_where_the_last_one_committed",
        lambda h: one(h.delivered, actor=ZOMBIE, tp=TP0).update(offset=1),
    ),
    (
        "a loss that is told as something else",
        "tells_what_a_pause_past_its_session_took",
        lambda h: one(h.events, kind="lost").update(kind="revoked"),
    ),
    ("a loss that nobody tells", "tells_what_a_pause_past_its_session_took", lambda h: without(h.events, kind="lost")),
    (
        "nobody is paused",
        "tells_what_a_pause_past_its_session_took",
        lambda h: without(h.events, kind="fault", begin_ns=1000 * MS),
    ),
    (
        "a pause of who has nothing",
        "tells_what_a_pause_past_its_session_took",
        lambda h: one(h.events, kind="assigned", begin_ns=10 * MS, actor=ZOMBIE).update(begin_ns=1001 * MS),
    ),
    (
        "a commit of who was put out that is accepted",
        "commits_nothing_once_it_was_put_out",
        lambda h: one(h.requests, api="OFFSET_COMMIT").update(offsets=[["orders", 1, 2, None]]),
    ),
    (
        "a pause that put nobody out",
        "commits_nothing_once_it_was_put_out",
        lambda h: (
            [m.update(member_id="b") for r in h.records for m in r.get("members") or [r] if m.get("member_id") == "c"]
            + [h.records.remove(one(h.records, at_ns=7005 * MS)), h.records.remove(h.records[-1])]
        ),
    ),
    (
        "a revoked callback that comes late",
        "gives_up_before_another_one_is_assigned",
        lambda h: one(h.events, kind="revoked", actor=BOUNCED, partition=1).update(end_ns=10_531 * MS),
    ),
    (
        "a revocation without a commit",
        "has_committed_what_is_done_when_it_gives_up",
        lambda h: one(h.records, type="commit", committed=4).update(at_ns=10_510 * MS),
    ),
    (
        "an end without a commit",
        "has_committed_what_is_done_when_it_gives_up",
        lambda h: without(h.records, type="commit"),
    ),
    ("an end without a farewell", "leaves_the_group_when_it_ends", lambda h: without(h.requests, api="LEAVE_GROUP")),
    ("a farewell that is refused", "leaves_the_group_when_it_ends", lambda h: h.requests[-1].update(error="UNKNOWN")),
    (
        "a member that stays",
        "leaves_the_group_when_it_ends",
        lambda h: h.records.remove(h.records[-1]),
    ),
    ("another exit code", "ends_soon_when_it_is_asked_to", lambda h: h.events[-1]["detail"].update(exit_code=143)),
    (
        "a kill at the end",
        "ends_soon_when_it_is_asked_to",
        lambda h: h.events[-1]["detail"].update(how="killed"),
    ),
    (
        "an end that takes its time",
        "ends_soon_when_it_is_asked_to",
        lambda h: one(h.events, kind="ended", actor=BOUNCED).update(begin_ns=36_000 * MS),
    ),
    ("nobody is asked to end", "ends_soon_when_it_is_asked_to", lambda h: without(h.events, kind="fault")),
    ("no end", "ends_soon_when_it_is_asked_to", lambda h: without(h.events, kind="ended", actor=BOUNCED)),
    (
        "an error of its own",
        "names_errors_as_kafka_does",
        lambda h: one(h.events, error="UNKNOWN_MEMBER_ID").update(error="UnknownMemberIdError"),
    ),
    (
        "an assignment that nobody gave",
        "is_assigned_what_the_coordinator_gives",
        lambda h: h.events.append(event("assigned", BOUNCED, 30_000, 1, number=5)),
    ),
    (
        "an assignment that is not told",
        "is_assigned_what_the_coordinator_gives",
        lambda h: without(h.events, kind="assigned", actor=ZOMBIE, partition=0),
    ),
]


def test_nobody_complains_of_what_is_right() -> None:
    assert complaints(right()) == {}


@pytest.mark.parametrize(("what", "question", "change"), DOCTORED, ids=[what for what, *_ in DOCTORED])
def test_a_question_complains_of(what: str, question: str, change: Callable[[History], object]) -> None:
    doctored = copy.deepcopy(right())
    change(doctored)
    assert question in complaints(doctored)


def test_every_question_can_be_answered_wrongly() -> None:
    assert {question for _, question, _ in DOCTORED} == {question.__name__ for question in QUESTIONS}
