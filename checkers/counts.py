"""What a detector is given besides the history (``Bounds``), and returns besides anomalies (``JudgedCounts``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fencepost.checkers.tables.rows import NS, Damage, PerformedStep


@dataclass(frozen=True)
class Bounds:
    """The bounds that the promises set on durations and repetitions.

    Attributes:
        recovers_ns, catches_up_ns: 0: no bound is promised.
        done_again: how many records may be processed again after each fault; -1: no bound is promised.
    """

    stuck_ns: int = 30 * NS
    recovers_ns: int = 0
    catches_up_ns: int = 0
    done_again: int = -1
    loop_deliveries: int = 10
    loop_ns: int = 30 * NS

    def deliveries_of(self, steps: Iterable[PerformedStep], first_ns: int, last_ns: int) -> int:
        """How often one record may be delivered between two times: each fault step around them adds two deliveries.

        A fault can evict an owner, and the owner receives the record again after it rejoins.
        """
        around = (s for s in steps if s.begun_ns and first_ns - self.loop_ns <= s.begun_ns <= last_ns)
        return self.loop_deliveries + 2 * sum(1 for _ in around)


@dataclass(frozen=True)
class JudgedCounts:
    """How much was judged; the measures use these numbers too.

    Attributes:
        acknowledged: sends that were acknowledged. visible: records of the log.
        judged: visible records between the group's start and its final committed offset; for compacted logs also
            records that a member had finished before they were replaced.
        delivered, begun, finished: rows of all incarnations that reached this state.
        first_ns, last_ns: the first delivery and the last finish; 0 when there is none.
        failed: kinds that could not be judged, with the reason. damage: records that could not be read.
    """

    acknowledged: int = 0
    visible: int = 0
    judged: int = 0
    delivered: int = 0
    begun: int = 0
    finished: int = 0
    first_ns: int = 0
    last_ns: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()
