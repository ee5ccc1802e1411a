"""A topic that is deleted under the group and made again: its partitions are others from then on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import WaitTimeout
from fencepost.interfaces import Injection, Target, World
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses.topics import listed
from fencepost.witnesses.witness import Injected, Sight, witness

PROOF_S = 10.0


@dataclass(frozen=True)
class RecreateTopic:
    """Deletes topics and makes them again, with as many partitions, the same settings, and no records.

    It chooses what it hits by itself and has nothing to heal. Witness: brokers tell another topic id (KIP-516) than
    before, and the logs begin at offset 0. What the group had not committed is told with it. It is a declared act: all
    that was written before is gone on purpose, and nobody is blamed for that; what is written from then on is judged
    as ever.

    Attributes:
        topics: empty: all of the workload.
    """

    topics: tuple[str, ...] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"admin", "deletion"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "until it is back commits are refused with UNKNOWN_TOPIC_OR_PARTITION, and producers wait; the coordinator "
        "forgets what was committed and may deal out the partitions anew; whoever asks for an offset of before goes by "
        "its auto.offset.reset, or skips what is below"
    )

    def __post_init__(self) -> None:
        serialization.settle(self)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return next(filter(None, (inventory.lacks_partition(TopicPartition(topic, 0)) for topic in self.topics)), "")

    def inject(self, world: World, target: Target) -> Injection:
        """Have them deleted and made again, one after the other.

        Raises:
            ClusterError: the controller refused to delete one, or nobody could be asked.
        """
        admin, topics = world.cluster.admin, [world.topics[topic] for topic in self.topics or world.topics]
        places = [TopicPartition(topic, p) for topic in topics for p in sorted(admin.leaders(topic))]
        before = {name: topic_id for topic_id, name in admin.names_by_id(topics).items()}
        ends = {TopicPartition(topic, p): end for topic in topics for p, end in admin.end_offsets(topic).items()}
        committed = admin.committed(world.group)
        late = ""
        try:
            for topic in topics:
                admin.recreate_topic(topic)
        except WaitTimeout as error:  # it may be done all the same, or by half
            late = f" ({error})"
        records = sum(ends.values())
        unread = sum(max(0, end - committed.get(place, 0)) for place, end in ends.items())

        def look() -> Sight:
            now = {name: topic_id for topic_id, name in admin.names_by_id(topics).items()}
            wrong = [f"{topic} is not there{late}" for topic in topics if topic not in now]
            wrong += [f"{topic} has the id {before[topic]} as before" for topic in now if now[topic] == before[topic]]
            if not wrong:
                begins = {
                    TopicPartition(topic, p): b for topic in topics for p, b in admin.start_offsets(topic).items()
                }
                wrong = [f"{place} is not there" for place in places if place not in begins]
                wrong += [f"{place} begins at {begin}, not at 0" for place, begin in begins.items() if begin]
            ids = {topic: [before.get(topic, ""), now.get(topic, "")] for topic in topics}
            what = (
                f"{', '.join(topics)} has another id, and the {records} records of {listed(places)} are gone, "
                f"of which the group had not committed {unread}"
            )
            return Sight("; ".join(wrong), what, {"ids": ids, "ends": {str(tp): end for tp, end in ends.items()}})

        return Injected(proven=lambda: witness(look, PROOF_S), acts=tuple(places), renews=True)
