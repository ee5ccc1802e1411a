"""Rules about sends against the log: records that were written twice, or in another order than they were sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection
from fencepost.checkers.tables.records import Logged

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def send_order(history: History) -> Iterator[Detection]:
    """``duplicate-write``, ``nonmonotonic-send``: a writer's records are not in the order of its send calls.

    A writer numbers its send calls (``seq``) in their order. Its visible records in one partition are compared in the
    order of their offsets. Records of unknown writers (-1) and copies of re-queued records do not count.

    * ``duplicate-write``: an earlier record has the same number. The client or a broker wrote one call twice. Only the
      same partition matters, because a client retries a call in the partition to which it sent it first.
    * ``nonmonotonic-send``: else, an earlier record has a higher number.

    members: ``producer-<writer>``; offset: the record's; times: when the call was made (0: unknown); excuse ``producer
    not idempotent``: the writer reported at its start that its client was not idempotent.
    """
    sent_ns: dict[tuple[int, int, int], int] = {}
    for p in history.records.produced:
        call = (p.tp, p.writer, p.seq)
        sent_ns[call] = min(p.sent_ns, sent_ns.get(call, p.sent_ns))
    for tp, log in history.log.items():
        of_writer: dict[int, list[Logged]] = defaultdict(list)
        copies = {copy.again for copy in history.tables.copies_of.get(tp, ())}
        for record in (record for offset, record in log.items() if offset not in copies):
            of_writer[record.writer].append(record)
        for writer, records in of_writer.items():
            known, highest = set[int](), -1
            for record in records if writer >= 0 else ():
                kind = "duplicate-write" if record.seq in known else "nonmonotonic-send"
                if record.seq <= highest:
                    at_ns = sent_ns.get((tp, writer, record.seq), 0)
                    excuse = history.tables.not_idempotent(writer)
                    yield Detection(kind, tp, (f"producer-{writer}",), "", excuse, record.offset, at_ns, at_ns)
                known.add(record.seq)
                highest = max(highest, record.seq)


RULES: dict[Rule, tuple[str, ...]] = {send_order: ("duplicate-write", "nonmonotonic-send")}
