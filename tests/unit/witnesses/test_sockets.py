"""Reads what ``ss -tinHO`` showed of a real Toxiproxy before and after a request of ours went into a hole."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.witnesses import sockets
from fencepost.witnesses.sockets import BytesPassed

SAMPLES = Path(__file__).parents[1] / "evidence" / "samples"
ENDPOINT, UPSTREAM = ("127.0.0.1", 40103), ("127.0.0.1", 30103)


def counted(name: str) -> sockets.Snapshot:
    return dict(sockets.parse((SAMPLES / name).read_text().splitlines()))


def test_a_hole_towards_the_broker_takes_bytes_in_and_lets_none_out() -> None:
    passed = sockets.passed(counted("placed-upstream.ss"), counted("probed-upstream.ss"), ENDPOINT, UPSTREAM)
    assert passed.up_in >= 19
    assert passed.up_out == 0


def test_a_hole_from_the_broker_lets_the_request_through_and_swallows_the_answer() -> None:
    passed = sockets.passed(counted("placed-downstream.ss"), counted("probed-downstream.ss"), ENDPOINT, UPSTREAM)
    assert passed == BytesPassed(up_in=19, up_out=19, down_in=464 + 169, down_out=0)


def test_other_links_count_nothing() -> None:
    before, after = counted("placed-downstream.ss"), counted("probed-downstream.ss")
    assert sockets.passed(before, after, ("127.0.0.1", 40104), ("127.0.0.1", 30104)) == BytesPassed()


def test_a_connection_between_the_same_ports_as_an_older_one_counts_from_zero() -> None:
    ends = (ENDPOINT, ("127.0.0.1", 5))
    before, after = {ends: sockets.Counted(100, 100)}, {ends: sockets.Counted(7, 0)}
    assert sockets.passed(before, after, ENDPOINT, UPSTREAM).up_in == 7


@pytest.mark.parametrize(
    ("shown", "address"),
    [
        ("127.77.1.2:9092", ("127.77.1.2", 9092)),
        ("[::1]:9092", ("::1", 9092)),
        ("[::ffff:127.0.0.1]:9092", ("127.0.0.1", 9092)),
        ("127.0.0.1%lo:9092", ("127.0.0.1", 9092)),
    ],
)
def test_addresses_are_read_in_every_form(shown: str, address: tuple[str, int]) -> None:
    ((ends, counts),) = sockets.parse([f"ESTAB 0 0 {shown} 1.2.3.4:5 cubic bytes_sent:3 bytes_acked:4"])
    assert ends == (address, ("1.2.3.4", 5))
    assert counts == (0, 3, True)


@pytest.mark.parametrize(("state", "up"), [("ESTAB", True), ("FIN-WAIT-2", False), ("CLOSE-WAIT", False)])
def test_a_connection_that_one_end_has_ended_is_not_up(state: str, up: bool) -> None:
    ((_, counts),) = sockets.parse([f"{state} 0 0 1.2.3.4:5 1.2.3.4:6 cubic bytes_received:7"])
    assert counts == (7, 0, up)


def test_lines_of_another_form_are_left_out() -> None:
    assert list(sockets.parse(["", "ESTAB 0 0 only:1", "State Recv-Q Send-Q Local:Port Peer:Port"])) == []
