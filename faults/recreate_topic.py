"""A recreated topic: it is deleted under the group and created again, with new partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import WaitTimeout
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.topics import listed

PROOF_S = 10.0


@dataclass(frozen=True)
class RecreateTopic:
    """Deletes topics and creates them again, with the same number of partitions, the same settings, and no records.

    It chooses its targets itself and has nothing to heal. Witness: brokers return another topic id (KIP-516) than
    before, and the logs begin at offset 0. The evidence also counts the records that the group had not committed. It is
    a declared act: the loss of all earlier records is intended and excused; records written afterwards are judged as
    usual.

    Attributes:
        topics: empty: all topics of the workload.
    """

    topics: tuple[str, ...] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"admin", "deletion"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "until the topic exists again, commits are refused with UNKNOWN_TOPIC_OR_PARTITION, and producers wait; the "
        "coordinator deletes the committed offsets and may reassign the partitions; a client that asks for an old "
        "offset applies auto.offset.reset, or skips the records below it"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return next(filter(None, (inventory.lacks_partition(TopicPartition(topic, 0)) for topic in self.topics)), "")

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Delete the topics and create them again, one after the other.

        Raises:
            ClusterError: the controller refused to delete one, or no broker answered.
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
        except WaitTimeout as error:  # the controller may have executed the request, or a part of it
            late = f" ({error})"
        records = sum(ends.values())
        unread = sum(max(0, end - committed.get(place, 0)) for place, end in ends.items())

        def look() -> Observation:
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
            return Observation("; ".join(wrong), what, {"ids": ids, "ends": {str(tp): end for tp, end in ends.items()}})

        return CallbackInjection(proven=lambda: witness(look, PROOF_S), acts=tuple(places), recreates=True)
