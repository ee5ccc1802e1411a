"""Deleted records: the beginning of each log moves up, whether or not the group has read the deleted records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import FaultError, ScenarioError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import TopicPartition
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.topics import OnPartitions, by_topic, listed

PROOF_S = 10.0


@dataclass(frozen=True)
class DeleteRecords(OnPartitions):
    """Deletes all but the last records of partitions, as retention does when a group lags.

    It chooses its targets itself and has nothing to heal. Witness: the logs begin where the deletion ended, and began
    below that before. The evidence also counts the deleted records that the group had not committed; they are lost
    because of the deletion, and no finding is reported for records below the beginning of a log.

    Attributes:
        partitions: like ``orders-3``; empty: all of the workload's partitions that have more records.
        keep: the number of last records of each partition that stay, at least 1, so that the group has records to read.
    """

    keep: int = 1
    needs: ClassVar[frozenset[str]] = frozenset({"admin", "deletion"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "a fetch of a deleted record is answered with OFFSET_OUT_OF_RANGE and the client applies auto.offset.reset; "
        "no member leaves the group"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep < 1:
            raise ScenarioError(
                f"found keep={self.keep}; use 1 or more: the group continues with the records that stay"
            )

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``."""
        places, cuts = self.places(world), self._cuts(world)
        whole = [place for place in places if place not in cuts] if self.partitions or not cuts else []
        return f"{listed(whole)} with no more than {self.keep} records" if whole else ""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Delete the records.

        Raises:
            FaultError: a named partition, or every partition, has no more records than are kept.
            ClusterError: a leader refused.
        """
        if whole := self.not_ready_reason(world, target):
            raise FaultError(f"found {whole}: there is nothing to delete")
        admin, cuts = world.cluster.admin, self._cuts(world)
        committed = admin.committed(world.group)
        for topic, before in by_topic({place: to for place, (_, to) in cuts.items()}).items():
            admin.delete_records(topic, before)
        unread = {place: to - max(begin, committed.get(place, 0)) for place, (begin, to) in cuts.items()}
        lost = sum(count for count in unread.values() if count > 0)
        records = sum(to - begin for begin, to in cuts.values())

        def look() -> Observation:
            starts = {topic: admin.start_offsets(topic) for topic in {place.topic for place in cuts}}
            now = {place: starts[place.topic].get(place.partition, -1) for place in cuts}
            wrong = [
                f"{place} begins at {now[place]}, not at {to}" for place, (_, to) in cuts.items() if now[place] < to
            ]
            data = {
                "begins": {str(place): [begin, now[place]] for place, (begin, _) in cuts.items()},
                "committed": {str(place): committed.get(place, -1) for place in cuts},
            }
            what = f"{records} records of {listed(list(cuts))} are gone, of which the group had not committed {lost}"
            return Observation("; ".join(wrong), what, data)

        return CallbackInjection(proven=lambda: witness(look, PROOF_S))

    def _cuts(self, world: FaultContext) -> dict[TopicPartition, tuple[int, int]]:
        """Present and next start offset of each partition that has more records than are kept."""
        admin, places = world.cluster.admin, self.places(world)
        starts = {topic: admin.start_offsets(topic) for topic in {place.topic for place in places}}
        ends = {topic: admin.end_offsets(topic) for topic in starts}
        bounds = {
            place: (starts[place.topic][place.partition], ends[place.topic][place.partition] - self.keep)
            for place in places
        }
        return {place: (begin, to) for place, (begin, to) in bounds.items() if to > begin}
