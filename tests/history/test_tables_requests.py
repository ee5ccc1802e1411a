"""What logged requests come to: which lines count, what a line says that does not say all, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.checkers.tables import requests
from fencepost.checkers.tables.requests import LATE_NS, Heartbeat, Join, Request
from fencepost.checkers.tables.rows import OffsetCommit, Window

WHO = {"id-a": "a", "id-b": "b"}
NUMBERS = {("orders", 0): 0, ("orders", 1): 1}
TIMES = {"start_ns": 5, "end_ns": 7, "uncertainty_ns": 2}
LATER = {"member_id": "id-b", "start_ns": 99, "error": None}
NO_TIMES = dict.fromkeys(TIMES)
HEARTBEATS = [
    ("HEARTBEAT", {}, Heartbeat("a", 3, 5, 7, 2)),
    ("CONSUMER_GROUP_HEARTBEAT", {}, Heartbeat("a", 3, 5, 7, 2)),
    ("HEARTBEAT", {"error": None}, Heartbeat("a", 3, 5, 7, 2)),
    ("HEARTBEAT", {"error": ""}, Heartbeat("a", 3, 5, 7, 2)),
    ("HEARTBEAT", {"error": "REBALANCE_IN_PROGRESS"}, Heartbeat("a", 3, 5, 7, 2, accepted=False)),
    ("HEARTBEAT", {"error": "UNKNOWN_MEMBER_ID"}, None),
    ("HEARTBEAT", {"generation": 0}, Heartbeat("a", 0, 5, 7, 2)),
    ("CONSUMER_GROUP_HEARTBEAT", {"generation": -1}, None),
    ("HEARTBEAT", {"generation": None}, None),
    ("HEARTBEAT", {"member_id": "stranger"}, None),
    ("HEARTBEAT", {"member_id": None}, None),
    ("HEARTBEAT", NO_TIMES, Heartbeat("a", 3, 0, 0, 0)),
    ("OFFSET_COMMIT", {}, None),
    ("heartbeat", {}, None),
]


@pytest.mark.parametrize(("api", "said", "heartbeat"), HEARTBEATS)
def test_a_heartbeat_is_of_a_known_member_and_not_refused(
    api: str, said: dict[str, Any], heartbeat: Heartbeat | None
) -> None:
    line = {"api": api, "member_id": "id-a", "generation": 3, **TIMES, **said}
    found = requests.heartbeats([line, {**line, "api": "HEARTBEAT", "generation": 9, **TIMES} | LATER], WHO)
    assert found == ((heartbeat,) if heartbeat else ()) + (Heartbeat("b", 9, 99, 7, 2),)


@pytest.mark.parametrize("missing", ["start_ns", "end_ns", "uncertainty_ns", "error", "generation", "member_id", "api"])
def test_a_heartbeat_may_lack_a_field(missing: str) -> None:
    """Times are 0 then, and there is no error; of whom or of what it is has to be said."""
    line = {"api": "HEARTBEAT", "member_id": "id-a", "generation": 3, "error": None, **TIMES}
    del line[missing]
    begin_ns, end_ns, blur_ns = (int(line.get(name) or 0) for name in TIMES)
    known = missing not in ("generation", "member_id", "api")
    assert requests.heartbeats([line], WHO) == (Heartbeat("a", 3, begin_ns, end_ns, blur_ns),) * known


def test_heartbeats_are_in_the_order_in_which_they_were_received() -> None:
    reported = [("id-b", 2, 8), ("id-a", 1, 9), ("id-b", 1, 9), ("id-a", 2, 8), ("id-a", 2, 7)]
    lines = [
        {"api": "HEARTBEAT", "member_id": member_id, "generation": generation, "start_ns": begin_ns}
        for member_id, begin_ns, generation in reported
    ]
    found = [(h.begin_ns, h.incarnation, h.generation) for h in requests.heartbeats(lines, WHO)]
    assert found == [(1, "a", 9), (1, "b", 9), (2, "a", 8), (2, "a", 7), (2, "b", 8)]


def test_a_request_is_served_from_before_its_line_to_after_its_answer() -> None:
    request, beat = Request(0, 1, "a", 5, 9, 2), Heartbeat("a", 1, 5, 9, 2)
    assert request.received == Window(5 - LATE_NS, 7)
    assert request.served == beat.served == Window(5 - LATE_NS, 11)


ASKED = [
    (("orders", 1, 4, None), {}, Request(1, 4, "a", 5, 7, 2)),
    (("orders", 1, 0, None), {}, Request(1, 0, "a", 5, 7, 2)),
    (("orders", 1, None, None), {}, Request(1, -1, "a", 5, 7, 2)),
    (
        ("orders", 1, 4, "NOT_COORDINATOR"),
        {"error": "UNKNOWN_MEMBER_ID"},
        Request(1, 4, "a", 5, 7, 2, "NOT_COORDINATOR"),
    ),
    (("orders", 1, 4, None), {"error": "UNKNOWN_MEMBER_ID"}, Request(1, 4, "a", 5, 7, 2, "UNKNOWN_MEMBER_ID")),
    (("orders", 1, 4, ""), {"error": "UNKNOWN_MEMBER_ID"}, Request(1, 4, "a", 5, 7, 2, "UNKNOWN_MEMBER_ID")),
    (("orders", 1, 4, None), NO_TIMES, Request(1, 4, "a", 0, 0, 0)),
    (("orders", 1, 4, None), {"member_id": "stranger"}, Request(1, 4, "", 5, 7, 2)),
    (("orders", 1, 4, None), {"member_id": None, "client_id": "b"}, Request(1, 4, "", 5, 7, 2)),
    (("orders", 7, 4, None), {}, None),
    (("other", 1, 4, None), {}, None),
    (("orders", 1, 4, None), {"api": "OFFSET_FETCH"}, None),
    (("orders", 1, 4, None), {"api": "HEARTBEAT"}, None),
]


@pytest.mark.parametrize(("place", "said", "request_"), ASKED)
def test_a_commit_is_asked_for_by_partition(place: object, said: dict[str, Any], request_: Request | None) -> None:
    line = {"api": "OFFSET_COMMIT", "member_id": "id-a", "error": None, **TIMES, "offsets": [place], **said}
    last = {**line, "api": "OFFSET_COMMIT", "offsets": [["orders", 0, 8, "FENCED"]], **LATER}
    assert requests.commits([line, last], {**WHO, "b": "no member id"}, NUMBERS) == (
        *([request_] if request_ else ()),
        Request(0, 8, "b", 99, last["end_ns"] or 0, last["uncertainty_ns"] or 0, "FENCED"),
    )


@pytest.mark.parametrize("missing", ["start_ns", "end_ns", "uncertainty_ns", "error", "member_id", "offsets", "api"])
@pytest.mark.parametrize("ask", [requests.commits, requests.fetches])
def test_a_request_may_lack_a_field(ask: Any, missing: str) -> None:
    api = "OFFSET_COMMIT" if ask is requests.commits else "OFFSET_FETCH"
    line = {"api": api, "member_id": "id-a", "error": None, **TIMES, "offsets": [["orders", 0, 4, None]]}
    del line[missing]
    begin_ns, end_ns, blur_ns = (int(line.get(name) or 0) for name in TIMES)
    who = "" if missing == "member_id" else "a"
    request = Request(0, 4, who, begin_ns, end_ns, blur_ns)
    assert ask([line], WHO, NUMBERS) == (request,) * (missing not in ("offsets", "api"))


def test_requests_are_in_the_order_in_which_they_were_received_then_of_partitions_and_offsets() -> None:
    reported = [(2, 0, 1, "a"), (1, 1, 3, "b"), (1, 1, 2, "z"), (1, 0, 9, "z"), (1, 0, 9, "b")]
    lines = [
        {"api": "OFFSET_COMMIT", "member_id": who, "start_ns": begin_ns, "offsets": [["orders", tp, offset, None]]}
        for begin_ns, tp, offset, who in reported
    ]
    found = requests.commits(lines, {who: who for *_, who in reported}, NUMBERS)
    assert [(r.begin_ns, r.tp, r.offset, r.incarnation) for r in found] == [
        *((1, 0, 9, "z"), (1, 0, 9, "b"), (1, 1, 2, "z"), (1, 1, 3, "b"), (2, 0, 1, "a"))
    ]


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ({"member_id": "id-a", "client_id": "b"}, "a"),
        ({"member_id": None, "client_id": "b"}, "b"),
        ({"member_id": "stranger", "client_id": "b"}, "b"),
        ({"member_id": "", "client_id": "b"}, "b"),
        ({"member_id": None, "client_id": None}, ""),
        ({"client_id": "b"}, "b"),
        ({"member_id": "stranger"}, ""),
    ],
)
def test_a_fetch_is_of_the_member_that_it_names_else_of_its_client(said: dict[str, Any], who: str) -> None:
    line = {"api": "OFFSET_FETCH", **TIMES, "offsets": [["orders", 0, 4, None], ["orders", 1, 3, "NO"]], **said}
    assert requests.fetches([line], WHO, NUMBERS) == (Request(0, 4, who, 5, 7, 2),)
    assert not requests.fetches([{**line, "error": "NO"}, {**line, "api": "OFFSET_COMMIT"}], WHO, NUMBERS)


COMMIT = OffsetCommit(0, 4, 9, 2 * LATE_NS, 3)  # an order other than its place
AT_NS = COMMIT.at_ns


def asked(who: str, offset: int = 4, *, tp: int = 0, from_ns: int = AT_NS, to_ns: int = AT_NS, **more: Any) -> Request:
    return Request(tp, offset, who, from_ns, to_ns, **{"uncertainty_ns": 0, **more})


@pytest.mark.parametrize(
    ("requested", "writer"),
    [
        ([asked("a")], "a"),
        ([asked("a")] * 2, "a"),
        ([asked("a"), asked("b")], None),
        ([asked("a"), asked("")], None),
        ([asked("")], None),
        ([asked("a"), asked("b", tp=1)], "a"),
        ([asked("a"), asked("b", 5)], "a"),
        ([asked("a"), asked("b", error="FENCED_INSTANCE_ID")], "a"),
        ([asked("a"), asked("b", error="REQUEST_TIMED_OUT")], None),
        ([asked("a", from_ns=AT_NS + LATE_NS + 3, to_ns=AT_NS + LATE_NS + 9)], "a"),
        ([asked("a", from_ns=AT_NS + LATE_NS + 4, to_ns=AT_NS + LATE_NS + 9)], None),
        ([asked("a", from_ns=0, to_ns=AT_NS - 4, uncertainty_ns=1)], "a"),
        ([asked("a", from_ns=0, to_ns=AT_NS - 5, uncertainty_ns=1)], None),
        ([], None),
    ],
)
def test_a_commit_was_written_by_the_only_one_who_may_have(requested: list[Request], writer: str | None) -> None:
    second = COMMIT._replace(offset=6, order=2)
    assert requests.writers([COMMIT, second], [*requested, asked("b", 6)]) == (
        ({9: writer} if writer else {}) | {2: "b"}
    )


@pytest.mark.parametrize(
    ("line", "at_ns"),
    [
        ({}, 7),
        ({"uncertainty_ns": None}, 5),
        ({"error": "MEMBER_ID_REQUIRED"}, None),
        ({"api": "SYNC_GROUP"}, None),
        ({"member_id": "id-x"}, None),
        ({"member_id": None}, None),
        ({"start_ns": None}, None),
    ],
)
def test_a_known_member_joined_by_the_latest_moment_at_which_its_request_may_have_come(
    line: dict[str, Any], at_ns: int | None
) -> None:
    asked = {"api": "JOIN_GROUP", "member_id": "id-a", **TIMES, "error": None}
    found = requests.joins([{**asked, **LATER, "start_ns": 1}, {**asked, **line}], WHO)
    assert found == (Join("b", 3), *([Join("a", at_ns)] if at_ns is not None else []))
    later = requests.joins([{**asked, **LATER}, asked], WHO)
    assert later == (Join("a", 7), Join("b", 101))


def test_the_static_id_of_an_incarnation_is_what_it_told_brokers() -> None:
    reported = [("id-a", "one"), ("id-b", None), ("id-x", "two"), (None, "three")]
    lines = [{"member_id": member_id, "instance_id": name} for member_id, name in reported]
    assert requests.static_ids(lines, WHO) == {"a": "one"}
