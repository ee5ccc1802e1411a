"""The members' requests to the coordinator, from the brokers' request log. Pure; called by ``tables.load``.

An offset record of the coordinator does not name the member that committed it; the logged request does. ``writers``
matches both by partition, offset and time. If two members may have written a record, its writer is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from fencepost.checkers.tables.interval_index import IntervalIndex
from fencepost.checkers.tables.rows import NS, OffsetCommit, Window
from fencepost_member.kafka_errors import outcome

Line = Mapping[str, Any]
Numbers = Mapping[tuple[str, int], int]
LATE_NS = NS  # how much later than the answer a line of the request log may be written; 1 ms was seen on a busy machine
REJOIN = "REBALANCE_IN_PROGRESS"
COMMITS = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
HEARTBEATS = ("HEARTBEAT", "CONSUMER_GROUP_HEARTBEAT")


class Request(NamedTuple):
    """One partition of one request as a broker logged it.

    Attributes:
        offset: the next offset to read; -1: none.
        incarnation: the member that sent it; empty: unknown.
        begin_ns, end_ns: when the broker received and answered it, by the broker's log. The true time may be up to
            ``uncertainty_ns`` later, or earlier: a busy broker writes its log late, by up to ``LATE_NS``.
        error: Kafka's name of the error in the answer; empty: the request was accepted.
        connection: the broker's name of the connection; empty: unknown.
        broker: the broker that answered; -1: unknown.
        transactional: whether it is a commit of a transaction, which comes into force with the end of the transaction.
        stable: whether it is a fetch of offsets that no open transaction may still change.
    """

    tp: int
    offset: int
    incarnation: str
    begin_ns: int
    end_ns: int
    uncertainty_ns: int
    error: str = ""
    connection: str = ""
    broker: int = -1
    transactional: bool = False
    stable: bool = False

    @property
    def received(self) -> Window:
        """The time in which the broker received it."""
        return Window(self.begin_ns - LATE_NS, self.begin_ns + self.uncertainty_ns)

    @property
    def served(self) -> Window:
        """The time in which the broker served it."""
        return Window(self.begin_ns - LATE_NS, self.end_ns + self.uncertainty_ns)


class Heartbeat(NamedTuple):
    """A heartbeat of a member that the coordinator knew, with the member's generation (or epoch); times as in
    ``Request``. ``accepted``: the answer did not request a rejoin."""

    incarnation: str
    generation: int
    begin_ns: int
    end_ns: int
    uncertainty_ns: int
    accepted: bool = True

    @property
    def served(self) -> Window:
        """The time in which the broker served it."""
        return Window(self.begin_ns - LATE_NS, self.end_ns + self.uncertainty_ns)


class Join(NamedTuple):
    """A known member joined the next generation (classic protocol); by ``at_ns`` a broker certainly had its request."""

    incarnation: str
    at_ns: int


def joins(lines: Iterable[Line], who: Mapping[str, str]) -> tuple[Join, ...]:
    """The requests to join that were accepted, in the order of time."""
    found = []
    for line in lines:
        incarnation = who.get(line.get("member_id") or "", "")
        if line.get("api") == "JOIN_GROUP" and incarnation and line.get("start_ns") and not line.get("error"):
            found.append(Join(incarnation, int(line["start_ns"]) + int(line.get("uncertainty_ns") or 0)))
    return tuple(sorted(found, key=lambda join: join.at_ns))


def static_ids(lines: Iterable[Line], who: Mapping[str, str]) -> Mapping[str, str]:
    """The static id of each incarnation that sent one to a broker."""
    reported = ((who.get(line.get("member_id") or "", ""), line.get("instance_id")) for line in lines)
    return {incarnation: str(name) for incarnation, name in reported if incarnation and name}


def heartbeats(lines: Iterable[Line], who: Mapping[str, str]) -> tuple[Heartbeat, ...]:
    """The heartbeats of known members that were not refused, in the order in which brokers received them.

    Heartbeats of the consumer protocol with which a member leaves (their epoch is negative) are left out.
    """
    found = []
    for line in lines:
        incarnation = who.get(line.get("member_id") or "", "")
        generation = line.get("generation")
        error = line.get("error") or ""
        if line.get("api") not in HEARTBEATS or error not in ("", REJOIN) or not incarnation or generation is None:
            continue
        if int(generation) >= 0:
            begin_ns, end_ns, blur_ns = (int(line.get(n) or 0) for n in ("start_ns", "end_ns", "uncertainty_ns"))
            found.append(Heartbeat(incarnation, int(generation), begin_ns, end_ns, blur_ns, not error))
    return tuple(sorted(found, key=lambda h: (h.begin_ns, h.incarnation)))


def commits(lines: Iterable[Line], who: Mapping[str, str], numbers: Numbers) -> tuple[Request, ...]:
    """Every request to commit an offset for the group, in the order in which brokers received them."""
    return _requests(lines, COMMITS, numbers, lambda line: who.get(line.get("member_id") or "", ""))


def fetches(
    lines: Iterable[Line],
    who: Mapping[str, str],
    numbers: Numbers,
    client_of: Callable[[Line], str] = lambda line: "",
) -> tuple[Request, ...]:
    """Every fetch of committed offsets that was answered without an error.

    A classic request has no member id: its incarnation is found by ``client_of``, from its client id or its slot. A
    client that is not in the group is named by its client id."""
    found = _requests(
        lines,
        ("OFFSET_FETCH",),
        numbers,
        lambda line: who.get(line.get("member_id") or "") or client_of(line) or line.get("client_id") or "",
    )
    return tuple(f for f in found if not f.error)


def _requests(
    lines: Iterable[Line], apis: Collection[str], numbers: Numbers, who: Callable[[Line], str]
) -> tuple[Request, ...]:
    found = []
    for line in lines:
        for topic, partition, offset, error in line.get("offsets") or () if line.get("api") in apis else ():
            tp = numbers.get((topic, int(partition)))
            if tp is not None:
                begin_ns, end_ns, blur_ns = (int(line.get(n) or 0) for n in ("start_ns", "end_ns", "uncertainty_ns"))
                why, by = error or line.get("error") or "", line.get("connection") or ""
                at, broker = (-1 if value is None else int(value) for value in (offset, line.get("broker")))
                stable = bool((line.get("request") or {}).get("requireStable"))
                how = (broker, line["api"] == COMMITS[1], stable)
                found.append(Request(tp, at, who(line), begin_ns, end_ns, blur_ns, why, by, *how))
    return tuple(sorted(found, key=lambda r: (r.begin_ns, r.tp, r.offset)))


def writers(records: Iterable[OffsetCommit], requests: Iterable[Request]) -> dict[int, str]:
    """The incarnation that wrote each accepted commit, by the commit's order; left out if several may have written it.

    Args:
        records: the accepted commits.
        requests: the commit requests; a request that was certainly refused has written nothing.
    """
    effective = (r for r in requests if outcome(r.error) != "fail")
    by_place = IntervalIndex(effective, lambda r: (r.tp, r.offset), lambda r: r.served)
    found = {}
    for record in records:
        names = {r.incarnation for r in by_place.meeting((record.tp, record.offset), record.written)}
        if len(names) == 1 and names != {""}:
            found[record.order] = names.pop()
    return found
