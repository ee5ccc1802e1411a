"""What excuses correct groups: nothing in a history that is right, and each defect where that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cluster.contract import MS, History
from cluster.defects import DEFECTS, GONE, KAFKA_PYTHON, LIBRARY, behind
from unit.tests.test_contract import BOUNCED, ZOMBIE, commit, committed, delivered, event, request, right

EXAMPLE = {
    "members": [ZOMBIE],
    "topic": "orders",
    "partition": 1,
    "offset": 2,
    "last_offset": 2,
    "from_ns": 0,
    "to_ns": 60_000 * MS,
    "sentence": "It was asked to end at 50 s, and was killed 20.0 s later in consumer.py, line 1, in close.",
}
LATER = {**EXAMPLE, "from_ns": 50_000 * MS}
KINDS = sorted({kind for defect in DEFECTS for kind in defect.kinds})


def history_of_the_release() -> History:
    """The right one, of the release of which something is said."""
    history = right()
    for row in history.kinds("started"):
        row["detail"]["client_version"] = "2.16.1, " + LIBRARY
    return history


def changed(*events: Any, brought: Any = (), requests: Any = ()) -> History:
    """The right one, and this besides."""
    history = history_of_the_release()
    history.events.extend(events)
    history.delivered.extend(brought)
    history.requests.extend(requests)
    return history


def asks_to_join(rebalance_timeout_ms: int) -> list[Any]:
    asked = {"memberEpoch": 0, "rebalanceTimeoutMs": rebalance_timeout_ms}
    return [request("CONSUMER_GROUP_HEARTBEAT", 9000, "b", ZOMBIE, error="INVALID_REQUEST", request=asked)]


def hears(error: str) -> Any:
    reported = {"text": "Failed to fetch committed offsets for 0 partition(s) in group"}
    return event("error", ZOMBIE, 40_000, error=error, detail=reported)


def paused(at: float) -> Any:
    return event("paused", ZOMBIE, at, 1)


RETURNS = [row for at in (30_000, 31_000, 32_000) for row in delivered(ZOMBIE, at, 1, range(1), 1)]
PAUSES = (30_500, 31_500)
GIVEN_BACK, FETCHED = event("assigned", ZOMBIE, 39_900, 1), delivered(ZOMBIE, 50_000, 1, range(1), 1)
SOON = {"callback-imbalance", "assignment-overlap", "dead-member"}
ONCE_MORE = delivered(ZOMBIE, 200, 1, range(1))
JOIN = [request("JOIN_GROUP", 20_500, "b", ZOMBIE)]


def joins(began: float, ended: float, *more: Any) -> History:
    """As the topic had grown, beside a revoked callback of these times."""
    return changed(event("revoked", ZOMBIE, began, 1, end_ns=int(ended * MS)), *more, requests=JOIN)


def assigned_after(history: History, *kinds: str) -> History:
    """Its callbacks after the revoked one: assigned, then this."""
    for at, kind in enumerate(("assigned", *kinds)):
        history.events.append(event(kind, ZOMBIE, 21_000 + 100 * at, 1))
    return history


def fault(name: str, outcome: str = "ok", at: float = 15_000) -> Any:
    return event("fault", "harness", at, outcome=outcome, detail={"fault": name})


GROWN, MADE_AGAIN = fault("add_partitions"), fault("recreate_topic")
SHOWN: list[tuple[str, History, bool]] = [
    ("duplicate-write", changed(fault("move_leaders")), True),
    ("duplicate-write", changed(fault("move_leaders", "info")), False),
    ("duplicate-write", changed(fault("move_leaders", at=61_000)), False),
    ("callback-imbalance", joins(20_400, 20_600, GROWN), True),
    ("callback-imbalance", joins(20_550, 20_600, GROWN), True),
    ("callback-imbalance", joins(20_400, 20_450, GROWN), False),
    ("callback-imbalance", joins(20_400, 20_600), False),
    ("callback-imbalance", replace(joins(20_400, 20_600, GROWN), protocol="cooperative"), False),
    ("assignment-overlap", assigned_after(joins(20_400, 20_600, GROWN), "assigned"), True),
    ("assignment-overlap", assigned_after(joins(20_400, 20_600), "assigned"), False),
    ("assignment-overlap", assigned_after(joins(20_400, 20_450, GROWN), "assigned"), False),
    ("assignment-overlap", assigned_after(joins(20_400, 20_600, GROWN), "revoked"), False),
    ("rewind", changed(paused(50), brought=ONCE_MORE), True),
    ("rewind", changed(paused(50)), False),
    ("rewind", changed(paused(50), brought=delivered(BOUNCED, 200, 1, range(1))), False),
    ("rewind", changed(paused(105), brought=ONCE_MORE), False),  # it was given something by then
    ("rewind", changed(event("paused", ZOMBIE, 50, 0), brought=ONCE_MORE), False),
    ("rewind", changed(event("assigned", ZOMBIE, 50), brought=ONCE_MORE), True),
    ("redelivery-loop", changed(MADE_AGAIN, *map(paused, PAUSES), brought=RETURNS), True),
    ("redelivery-loop", changed(MADE_AGAIN, paused(PAUSES[0]), brought=RETURNS), False),
    ("redelivery-loop", changed(*map(paused, PAUSES), brought=RETURNS), False),
    ("dead-member", changed(requests=asks_to_join(-1)), True),
    ("dead-member", changed(requests=asks_to_join(8000)), False),
    ("stuck-partition", changed(GIVEN_BACK, hears("NOT_COORDINATOR")), True),
    ("stuck-partition", changed(GIVEN_BACK, hears("COORDINATOR_LOAD_IN_PROGRESS")), False),
    ("stuck-partition", changed(hears("NOT_COORDINATOR"), brought=FETCHED), False),
    ("stuck-partition", changed(GIVEN_BACK, hears("NOT_COORDINATOR"), brought=FETCHED), False),  # so it did fetch
]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_excused_by_a_history_that_is_right(kind: str) -> None:
    assert behind(history_of_the_release(), kind, EXAMPLE) == ""


@pytest.mark.parametrize(("kind", "history", "shown"), SHOWN)
def test_a_defect_is_shown(kind: str, history: History, shown: bool) -> None:
    assert bool(behind(history, kind, EXAMPLE)) is shown


@pytest.mark.parametrize(("kind", "history"), [shown[:2] for shown in SHOWN if shown[0] in SOON and shown[2]])
def test_it_excuses_nothing_that_came_long_after_it(kind: str, history: History) -> None:
    assert behind(history, kind, LATER) == ""


@pytest.mark.parametrize(("kind", "history"), [shown[:2] for shown in SHOWN if shown[2]])
def test_nothing_is_said_of_another_release(kind: str, history: History) -> None:
    started = [
        e | {"detail": e["detail"] | {"client_version": "2.17.0, librdkafka 2.17.0"}} for e in history.kinds("started")
    ]
    others = [e for e in history.events if e["kind"] != "started"]
    assert behind(replace(history, events=[*started, *others]), kind, EXAMPLE) == ""


def test_what_is_said_of_a_topic_that_is_gone_is_looked_up_by_its_name() -> None:
    history = changed(paused(50), brought=ONCE_MORE)
    assert behind(history, "rewind", EXAMPLE | {"topic": f"orders{GONE}"})


@pytest.mark.parametrize(("begins", "shown"), [(3, True), (2, False)])
def test_who_was_below_where_the_log_had_begun_to_begin_asks_for_that_until_it_is_given_something(begins, shown):
    """It was given up to 1 when it lost the partition, which came back to it."""
    history = changed(brought=delivered(ZOMBIE, 10_560, 1, range(begins, begins + 1), 1))
    history.log[:] = [row for row in history.log if row["tp"] != ("orders", 1) or row["offset"] >= begins]
    assert bool(behind(history, "wrong-start", EXAMPLE)) is shown


@pytest.mark.parametrize(
    ("about", "had", "paused_at", "shown"),
    [
        ((MADE_AGAIN,), 5, 30_500, True),
        ((), 5, 30_500, False),
        ((MADE_AGAIN,), 4, 30_500, False),  # it never was so far
        ((MADE_AGAIN,), 5, 29_500, False),
    ],
)
def test_what_is_skipped_up_to_where_the_former_topic_was_read_is_the_clients_doing(about, had, paused_at, shown):
    given = [(29_000, had), (30_000, 2), (31_000, 6)]
    brought = [row for at, offset in given for row in delivered(ZOMBIE, at, 1, range(offset, offset + 1), 1)]
    history = changed(*about, paused(paused_at), brought=brought)
    assert bool(behind(history, "unseen", EXAMPLE | {"offset": 3, "last_offset": 5})) is shown


@pytest.mark.parametrize(("answered_ms", "shown"), [(20, True), (4, False)])
def test_an_older_commit_comes_last_only_where_its_answer_did(answered_ms: int, shown: bool) -> None:
    older = commit(ZOMBIE, 30_000, 1, 2, detail={"mode": "async"}, end_ns=(30_000 + answered_ms) * MS)
    newer = commit(ZOMBIE, 30_005, 1, 4, detail={"mode": "on-revoke"}, end_ns=30_010 * MS)
    history = history_of_the_release()
    history.events[:] = [e for e in history.events if e["kind"] != "commit"] + [older, newer]
    assert bool(behind(history, "commit-regression", EXAMPLE)) is shown


@pytest.mark.parametrize(
    ("mode", "given", "shown"),
    [
        ("auto", [39, 40], True),
        ("auto", [40], False),  # it may be another one that was given what is committed
        ("auto", [39, 38], False),  # it went back
        ("sync", [39, 40], False),
    ],
)
def test_an_automatic_commit_is_an_older_one_where_the_position_did_not_go_back(mode, given, shown) -> None:
    commits = [commit(ZOMBIE, at, 1, to, detail={"mode": mode}) for at, to in ((30_100, 40), (30_200, 2))]
    history = history_of_the_release()
    history.events[:] = [e for e in history.events if e["kind"] != "commit"] + commits
    history.records.append(committed(30_100, 1, 40))
    one_by_one = [delivered(ZOMBIE, 30_000 + n, 1, range(at, at + 1)) for n, at in enumerate(given)]
    history.delivered[:] = [row for rows in one_by_one for row in rows]
    assert bool(behind(history, "commit-regression", EXAMPLE)) is shown


def forgets(
    release: str = KAFKA_PYTHON,
    changed_at: float = 30_000,
    took_ms: int = 1500,
    given_at: float = 32_000,
    told_at: float = 34_000,
    about: Any = (),
) -> History:
    """It changed its subscription, gave up what it had, joined, and was given a record before it was told again."""
    history = right()
    client, _, version = release.partition(" ")
    for row in history.kinds("started"):
        row["detail"].update(client=client, client_version=version)
    gave_up = [event("subscribed", ZOMBIE, changed_at), event("revoked", ZOMBIE, 30_001, 1)]
    history.events.extend([*about, *gave_up, event("assigned", ZOMBIE, told_at, 1)])
    history.delivered.extend(delivered(ZOMBIE, given_at, 1, range(9, 10)))
    joined = {"end_ns": (30_010 + took_ms) * MS}
    given = {"end_ns": (30_020 + took_ms) * MS, "assignment": {"orders": [1]}}
    join = request("JOIN_GROUP", 30_010, "b", ZOMBIE, **joined)
    history.requests.extend([join, request("SYNC_GROUP", 30_011 + took_ms, "b", ZOMBIE, **given)])
    return history


def never_joins() -> History:
    """It gave up what it had, as a topic had grown, and was given something all the same."""
    history = forgets(changed_at=25_000, about=[fault("add_partitions", at=29_000)])
    history.requests[:] = [row for row in history.requests if row["api"] not in ("JOIN_GROUP", "SYNC_GROUP")]
    return history


@pytest.mark.parametrize(
    ("history", "example", "shown"),
    [
        (forgets(), {}, True),
        (forgets(given_at=30_500), {}, False),  # it may have had it in hand
        (forgets(given_at=34_500), {}, False),
        (forgets(took_ms=50), {}, False),  # it was within the poll
        (forgets("kafka-python 2.0.6"), {}, False),
        (forgets(changed_at=25_000), {}, False),  # it was told to join
        (forgets(changed_at=25_000, about=[fault("add_partitions", at=29_000)]), {}, True),
        (forgets(changed_at=25_000, about=[fault("add_partitions", at=14_000)]), {}, False),
        (forgets(changed_at=25_000, about=[fault("add_partitions", "info", at=29_000)]), {}, False),
        (forgets(), {"members": []}, True),
        (forgets(), {"members": [], "partition": 0}, False),
        (forgets(), {"members": [BOUNCED]}, True),  # who had it before
        (forgets(), {"members": [BOUNCED], "partition": 0}, False),
        (forgets(), {"to_ns": 29_000 * MS}, False),
        (forgets(), {"from_ns": 48_000 * MS}, True),
        (forgets(), {"from_ns": 50_000 * MS}, False),
        (never_joins(), {}, True),
        (never_joins(), {"members": [BOUNCED]}, False),
    ],
)
def test_a_join_is_forgotten_where_who_gave_up_is_given_records(history: History, example: Any, shown: bool) -> None:
    assert bool(behind(history, "stuck-partition", EXAMPLE | example)) is shown


def test_nothing_is_said_of_a_batch_of_nobody() -> None:
    assert behind(changed(fault("move_leaders")), "duplicate-write", EXAMPLE | {"members": []}) == ""


@pytest.mark.parametrize(
    ("place", "fault_name", "sent_ms", "shown"),
    [
        ("in send_offsets_to_transaction", "refuse", [49_000], True),
        ("in send_offsets_to_transaction", "cut_connections", [49_000], True),
        ("in send_offsets_to_transaction", "refuse", [49_000, 51_000], False),
        ("in send_offsets_to_transaction", "refuse", [], False),
        ("in send_offsets_to_transaction", "stall", [49_000], False),
        ("in commit_transaction", "refuse", [49_000], False),
    ],
)
def test_a_producer_that_hangs_sends_no_offsets_any_more(
    place: str, fault_name: str, sent_ms: list[float], shown: bool
) -> None:
    hung = {**LATER, "sentence": f"It was killed in producer.py, line 150, {place}."}
    requests = [request("TXN_OFFSET_COMMIT", at, "b", ZOMBIE) for at in sent_ms]
    history = changed(fault(fault_name), requests=requests)
    assert bool(behind(history, "hung-shutdown", hung)) is shown
