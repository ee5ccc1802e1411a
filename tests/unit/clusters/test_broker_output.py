"""Lines of brokers' output: which are requests of the group, and which make the request log unusable."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from fencepost.clusters.attach import broker_output
from fencepost.clusters.attach.broker_output import Follower

BODY = 'Completed request:{"request":{"groupId":"orders"}}'


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follower:
    monkeypatch.setattr(broker_output.time, "time", lambda: 1_764_493_514.5)  # 2025-11-30 09:05:14.5 UTC
    return Follower("container", tmp_path / "text", tmp_path / "requests", "orders")


def taken(follower: Follower, line: str) -> tuple[str, str]:
    """The text and the requests that a line adds."""
    text, requests = io.StringIO(), io.StringIO()
    follower.take(line, text, requests)
    return text.getvalue(), requests.getvalue()


def test_a_request_of_the_group_is_stored_with_its_time(follower: Follower) -> None:
    line = f"[2025-11-30 10:05:14,123] DEBUG {BODY} (kafka.request.logger)"
    assert taken(follower, line) == ("", f"1764493514123 {BODY}\n")
    assert not follower.gap


def test_a_request_of_another_group_is_left_out(follower: Follower) -> None:
    line = "[2025-11-30 09:05:14,123] DEBUG " + BODY.replace("orders", "refunds")
    assert taken(follower, line) == ("", "")
    assert not follower.gap


def test_text_has_its_time_in_utc(follower: Follower) -> None:
    line = "[2025-11-30 14:50:14,123] INFO Stabilized group orders (kafka)"
    assert taken(follower, line) == ("[2025-11-30 09:05:14,123] INFO Stabilized group orders (kafka)\n", "")
    assert taken(follower, "\tat org.apache.kafka.X") == ("\tat org.apache.kafka.X\n", "")


@pytest.mark.parametrize(
    "line",
    [
        '{"time": "2025-11-30T09:05:14.123Z", "text": "Completed request:{\\"groupId\\":\\"orders\\"} fencepost-mark-1',
        "2025-11-30 09:05:14 DEBUG Completed request:{orders fencepost-mark-1}",
        "[2025-11-30 09:05:14,123] DEBUG Completed request:RequestHeader(orders, fencepost-mark-1)",
    ],
)
def test_requests_in_another_form_are_a_gap_and_carry_no_mark(follower: Follower, line: str) -> None:
    assert taken(follower, line) == ("", "")
    assert re.match("it writes requests in another form than Kafka's own images: ", follower.gap)
    assert not follower.marks
    taken(follower, f"[2025-11-30 09:05:14,123] DEBUG {BODY.replace('orders', 'fencepost-mark-2')}")
    assert follower.marks == {"fencepost-mark-2"}
