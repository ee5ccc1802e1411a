"""What excuses correct groups: nothing in a history that is right, and each defect where that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cluster.contract import MS, History
from cluster.defects import DEFECTS, GONE, behind
from unit.test_contract import ZOMBIE, commit, committed, delivered, event, request, right

from fencepost.faults import AddPartitions, MoveLeaders, RecreateTopic

EXAMPLE = {"members": [ZOMBIE], "topic": "orders", "partition": 1, "offset": 2, "to_ns": 60_000 * MS}
KINDS = sorted({kind for defect in DEFECTS for kind in defect.kinds})


def changed(*events: Any, brought: Any = (), requests: Any = ()) -> History:
    """The right one, and this besides."""
    history = right()
    history.events.extend(events)
    history.delivered.extend(brought)
    history.requests.extend(requests)
    return history


def asks_to_join(rebalance_timeout_ms: int) -> list[Any]:
    asked = {"memberEpoch": 0, "rebalanceTimeoutMs": rebalance_timeout_ms}
    return [request("CONSUMER_GROUP_HEARTBEAT", 9000, "b", ZOMBIE, error="INVALID_REQUEST", request=asked)]


def hears(error: str) -> Any:
    told = {"text": "Failed to fetch committed offsets for 0 partition(s) in group"}
    return event("error", ZOMBIE, 9000, error=error, detail=told)


def paused(at: float) -> Any:
    return event("paused", ZOMBIE, at, 1)


def returns(*pauses: float) -> History:
    """It is given the first record three times."""
    brought = [row for at in (30_000, 31_000, 32_000) for row in delivered(ZOMBIE, at, 1, range(1), 1)]
    return changed(*map(paused, pauses), brought=brought)


ONCE_MORE = delivered(ZOMBIE, 200, 1, range(1))
JOIN = [request("JOIN_GROUP", 20_500, "b", ZOMBIE)]


def joins_after(began: float) -> History:
    """A revoked callback that began then lasts for longer than the member waits before it joins."""
    return changed(event("revoked", ZOMBIE, began, 1, end_ns=20_600 * MS), requests=JOIN)


def assigned_after(history: History, *kinds: str) -> History:
    """Its callbacks after the revoked one: assigned, then this."""
    for at, kind in enumerate(("assigned", *kinds)):
        history.events.append(event(kind, ZOMBIE, 21_000 + 100 * at, 1))
    return history


SHOWN: list[tuple[str, History, set[type], bool]] = [
    ("duplicate-write", right(), {MoveLeaders}, True),
    ("callback-ledger", joins_after(20_400), {AddPartitions}, True),
    ("callback-ledger", joins_after(20_510), {AddPartitions}, False),
    ("callback-ledger", joins_after(20_400), set(), False),
    ("callback-ledger", replace(joins_after(20_400), protocol="cooperative"), {AddPartitions}, False),
    ("assignment-overlap", assigned_after(joins_after(20_400), "assigned"), {AddPartitions}, True),
    ("assignment-overlap", assigned_after(joins_after(20_400), "assigned"), set(), False),
    ("assignment-overlap", assigned_after(joins_after(20_510), "assigned"), {AddPartitions}, False),
    ("assignment-overlap", assigned_after(joins_after(20_400), "revoked"), {AddPartitions}, False),
    ("rewind", changed(paused(50), brought=ONCE_MORE), set(), True),
    ("rewind", changed(paused(50)), set(), False),
    ("rewind", changed(paused(105), brought=ONCE_MORE), set(), False),  # it was given something by then
    ("rewind", changed(event("paused", ZOMBIE, 50, 0), brought=ONCE_MORE), set(), False),
    ("rewind", changed(event("assigned", ZOMBIE, 50), brought=ONCE_MORE), set(), True),
    ("redelivery-loop", returns(30_500, 31_500), {RecreateTopic}, True),
    ("redelivery-loop", returns(30_500), {RecreateTopic}, False),
    ("redelivery-loop", returns(30_500, 31_500), set(), False),
    ("dead-member", changed(requests=asks_to_join(-1)), set(), True),
    ("dead-member", changed(requests=asks_to_join(8000)), set(), False),
    ("stuck-partition", changed(hears("NOT_COORDINATOR")), set(), True),
    ("stuck-partition", changed(hears("COORDINATOR_LOAD_IN_PROGRESS")), set(), False),
]


def test_what_is_said_of_a_topic_that_is_gone_is_looked_up_by_its_name() -> None:
    history = changed(paused(50), brought=ONCE_MORE)
    assert behind(history, set(), "rewind", EXAMPLE | {"topic": f"orders{GONE}"})


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_excused_by_a_history_that_is_right(kind: str) -> None:
    assert behind(right(), set(), kind, EXAMPLE) == ""


@pytest.mark.parametrize(("kind", "history", "happened", "shown"), SHOWN)
def test_a_defect_is_shown(kind: str, history: History, happened: set[type], shown: bool) -> None:
    assert bool(behind(history, happened, kind, EXAMPLE)) is shown


@pytest.mark.parametrize(("answered_ms", "shown"), [(20, True), (4, False)])
def test_an_older_commit_comes_last_only_where_its_answer_did(answered_ms: int, shown: bool) -> None:
    older = commit(ZOMBIE, 30_000, 1, 2, detail={"mode": "async"}, end_ns=(30_000 + answered_ms) * MS)
    newer = commit(ZOMBIE, 30_005, 1, 4, detail={"mode": "on-revoke"}, end_ns=30_010 * MS)
    history = right()
    history.events[:] = [e for e in history.events if e["kind"] != "commit"] + [older, newer]
    assert bool(behind(history, set(), "commit-regression", EXAMPLE)) is shown


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
    history = right()
    history.events[:] = [e for e in history.events if e["kind"] != "commit"] + commits
    history.records.append(committed(30_100, 1, 40))
    one_by_one = [delivered(ZOMBIE, 30_000 + n, 1, range(at, at + 1)) for n, at in enumerate(given)]
    history.delivered[:] = [row for rows in one_by_one for row in rows]
    assert bool(behind(history, set(), "commit-regression", EXAMPLE)) is shown
