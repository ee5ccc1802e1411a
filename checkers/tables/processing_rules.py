"""The rules of processing: which deliveries were processed, inferred from the recorded history. Pure.

A member records when it begins and finishes each record, as far as it knows. After the run, rules correct these
reports. The first and the last one do not know when a record was processed, so they use the earliest possible time: the
time of the delivery.

``effect`` (the workload names it)
    A record was processed if it has an effect; the member is unknown. So the first delivery of each record with an
    effect counts as processed. For every other delivery it is unknown whether processing began.

``commit``, for a run that was recorded by another rule (the caller of the judge names it)
    A record was processed when the program committed past it; see ``another_rule``.

The last commit of a VerifiableConsumer
    Kafka's program reports the records of a poll, commits past them, and reports the answer to the commit. If it dies
    in between, its reports say that the records are in flight. But it had finished them when it sent the commit, and
    the brokers logged that request. Records in flight were delivered by its last poll, before the commit; unfinished
    records of an earlier poll had been released, or were delivered to it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fencepost.checkers.tables.reading import Deliveries
from fencepost.checkers.tables.records import Delivered
from fencepost.checkers.tables.rows import Life
from fencepost.history import HARNESS, EventKind, RecordState
from fencepost.history.events import Event
from fencepost.model.clients import VERIFIABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

OF_FIRST_DELIVERIES = ("tp", "offset", "ord", "delivered_ns")  # the columns that show the first delivery of a record
OF_LAST_COMMITS = ("poll",)


class FirstDeliveries(NamedTuple):
    """The rule ``effect``: an incarnation processed the deliveries of a partition that have the numbers ``ords``."""

    tp: int
    incarnation: str
    ords: frozenset[int]

    def applied(self, row: Delivered) -> Delivered:
        """A delivery of this incarnation and partition. If it was not processed, begin, end and state are unknown."""
        if row.ord in self.ords:
            return _when_delivered(row)
        return row._replace(begin_ns=0, done_ns=0, state=RecordState.DELIVERED)


class ByCommits(NamedTuple):
    """The rule ``commit``: when an incarnation began and processed the deliveries of a partition; 0: never.

    Their numbers ``ords`` ascend.
    """

    tp: int
    incarnation: str
    ords: NDArray[Any]
    begin_ns: NDArray[Any]
    done_ns: NDArray[Any]

    def applied(self, row: Delivered) -> Delivered:
        """A delivery of this incarnation and partition."""
        begin_ns, done_ns = (int(times[0]) for times in self.times([row.ord]))
        state = RecordState.DONE if done_ns else RecordState.BEGUN if begin_ns else RecordState.DELIVERED
        return row._replace(begin_ns=begin_ns, done_ns=done_ns, state=state)

    def times(self, ords: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """When the deliveries with these numbers, all of them known, began and were processed."""
        import numpy as np

        at = np.searchsorted(self.ords, ords)
        return self.begin_ns[at], self.done_ns[at]


class LastCommit(NamedTuple):
    """The last commit of a partition by an incarnation that died, certainly sent by ``asked_ns``.

    Attributes:
        offset: the next offset to read.
        poll: the number of the incarnation's last poll.
    """

    tp: int
    incarnation: str
    offset: int
    asked_ns: int
    poll: int

    def applied(self, row: Delivered) -> Delivered:
        """A delivery of this incarnation and partition. It was processed if it was still in flight, and the commit went
        past it."""
        in_flight = row.done_ns == 0 and row.poll == self.poll and row.delivered_ns <= self.asked_ns
        return _when_delivered(row) if in_flight and row.offset < self.offset else row


Inferred = FirstDeliveries | ByCommits | LastCommit


def _when_delivered(row: Delivered) -> Delivered:
    return row._replace(begin_ns=row.delivered_ns, done_ns=row.delivered_ns, state=RecordState.DONE)


def as_processed(row: Delivered, rules: Iterable[Inferred]) -> Delivered:
    """A delivery after the rules of its incarnation and partition, applied one after the other."""
    for rule in rules:
        row = rule.applied(row)
    return row


def effects_known(events: Iterable[Event]) -> bool:
    """Whether the harness read all effects; if not, nothing is inferred from effects."""
    unrecorded = (event for event in events if event["kind"] == EventKind.UNRECORDED)
    return not any(event["actor"] == HARNESS or event["id"] < 0 for event in unrecorded)


def infer_from_effects(
    affected: Mapping[int, Collection[int]], deliveries: Sequence[Deliveries]
) -> tuple[FirstDeliveries, ...]:
    """The rule ``effect``: which deliveries each incarnation processed, for each partition that was delivered to it.

    Args:
        affected: the offsets of the records that have an effect, by partition.
        deliveries: of all incarnations, with the columns ``OF_FIRST_DELIVERIES``.
    """
    import numpy as np

    whose = np.repeat(np.arange(len(deliveries)), [len(one.columns["tp"]) for one in deliveries])
    tp, offset, ords, at_ns = (_joined(deliveries, name) for name in OF_FIRST_DELIVERIES)
    order = np.lexsort((ords, whose, at_ns, offset, tp))
    whose, tp, offset, ords = whose[order], tp[order], offset[order], ords[order]
    first = np.append(True, (tp[1:] != tp[:-1]) | (offset[1:] != offset[:-1]))[: len(tp)]
    found: dict[tuple[int, int], frozenset[int]] = {}
    for number in np.unique(tp).tolist():
        part = slice(*np.searchsorted(tp, [number, number + 1]).tolist())
        chosen = first[part] & np.isin(offset[part], [*affected.get(number, ())])
        for one in np.unique(whose[part]).tolist():
            found[one, number] = frozenset(ords[part][chosen & (whose[part] == one)].tolist())
    return tuple(
        FirstDeliveries(number, deliveries[one].incarnation, processed)
        for (one, number), processed in found.items()
        if deliveries[one].as_recorded
    )


def _joined(deliveries: Iterable[Deliveries], name: str) -> NDArray[Any]:
    import numpy as np

    return np.concatenate([np.empty(0, np.int64), *(one.columns[name] for one in deliveries)])


def dead_verifiable_consumers(events: Iterable[Event], lives: Mapping[str, Life]) -> frozenset[str]:
    """The incarnations of VerifiableConsumers that died."""
    started = (event for event in events if event["kind"] == EventKind.STARTED)
    names = {event["actor"] for event in started if event["detail"].get("client") == VERIFIABLE}
    return frozenset(name for name in names & lives.keys() if lives[name].how not in ("", "closed"))


def infer_from_commits(
    dead: Collection[str],
    requests: Iterable[Mapping[str, Any]],
    numbers: Mapping[tuple[str, int], int],
    deliveries: Iterable[Deliveries],
) -> tuple[LastCommit, ...]:
    """The last commit of each dead VerifiableConsumer, for each of its partitions.

    Args:
        dead: the incarnations.
        requests: the brokers' log, in which the client id is the name of the incarnation.
        numbers: the numbers of partitions by (topic, partition).
        deliveries: of all incarnations, with the columns ``OF_LAST_COMMITS``.
    """
    last: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for request in requests:
        name, start_ns = request.get("client_id") or "", request.get("start_ns")
        if request.get("api") == "OFFSET_COMMIT" and name in dead and start_ns is not None:
            asked_ns = start_ns + (request.get("uncertainty_ns") or 0)
            if name not in last or asked_ns >= last[name][0]:
                last[name] = asked_ns, request
    return tuple(
        LastCommit(numbers[topic, partition], one.incarnation, offset, asked_ns, int(one.columns["poll"].max()))
        for one in deliveries
        if one.incarnation in last and one.as_recorded and len(one.columns["poll"])
        for asked_ns, request in [last[one.incarnation]]
        for topic, partition, offset, _ in request.get("offsets") or ()
        if (topic, partition) in numbers and offset is not None
    )
