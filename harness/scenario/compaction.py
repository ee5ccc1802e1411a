"""How brokers keep the logs of a scenario's topics, and what of it could not be judged: that is refused at the start.

Compaction leaves the last record of each key. Whoever looks later cannot tell a record that it took from one that was
never there, but by a later record of the same key; so what could take that, too, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fencepost.errors import PlanError, refuse
from fencepost.model.settings import CLEANED, CLEANUP, DAY_MS, TOMBSTONES, Setting
from fencepost.schedule.selectors import partition_of

if TYPE_CHECKING:
    from fencepost.model.topic import Topic
    from fencepost.schedule.plan import Step

Settings = Mapping[str, Setting]
BESIDE_S = 120.0  # so long a run lasts at most besides its chaos and its drain: to get warm, and to be read
# Settings of brokers by which segments of __consumer_offsets end so soon that these are compacted during a run, too.
ROLLING = (
    *("log.roll.ms", "log.roll.hours", "log.segment.ms", "log.cleaner.max.compaction.lag.ms"),
    "offsets.topic.segment.bytes",
)


def policies(topic: Settings, brokers: Settings) -> frozenset[str]:
    """The ``cleanup.policy`` of a topic: delete, compact, or both. (``brokers``: their settings.)"""
    asked = topic.get(CLEANUP, brokers.get(f"log.{CLEANUP}", "delete"))
    return frozenset(policy.strip() for policy in str(asked).split(","))


def compacted(topics: Iterable[Topic], brokers: Settings) -> list[Topic]:
    """Those of some topics that are compacted."""
    return [topic for topic in topics if "compact" in policies(topic.config, brokers)]


def check(topics: Iterable[Topic], brokers: Settings, steps: Iterable[Step], longest_s: float, program: bool) -> None:
    """Refuse a plan with compacted topics of which something could not be judged, or done.

    Args:
        longest_s: how long chaos and drain may take.
        program: whether the group runs a program of its own.

    Raises:
        PlanError: lists all of it, and what to ask for instead.
    """
    refuse(map(PlanError, _wrong(topics, brokers, steps, longest_s, program)))


def _wrong(
    topics: Iterable[Topic], brokers: Settings, steps: Iterable[Step], longest_s: float, program: bool
) -> Iterator[str]:
    those = compacted(topics, brokers)
    if those and (rolling := [name for name in ROLLING if name in brokers]):
        yield (
            f"{rolling[0]} of the brokers would have __consumer_offsets compacted beside the topic {those[0].name!r}, "
            "and with it what the group committed: use the topic's own segment.ms, segment.bytes or "
            "max.compaction.lag.ms"
        )
    for topic in those if program else ():
        yield from _short_lived_tombstones(topic, brokers, longest_s + BESIDE_S)
    whole = [topic.name for topic in those if "delete" not in policies(topic.config, brokers)]
    for step in steps:
        if "deletion" in step.fault.needs:
            named = {partition_of(name).topic for name in getattr(step.fault, "partitions", ())} or {*whole}
            if refused := sorted(named & {*whole}):
                yield (
                    f"{step.named}: Kafka deletes no records of the topic {refused[0]!r}, which is only compacted: "
                    f"use {CLEANUP}=compact,delete"
                )


def _short_lived_tombstones(topic: Topic, brokers: Settings, longest_s: float) -> Iterator[str]:
    """Producers of ours write no tombstones. A program may; and of one that is gone nobody knows what it deleted."""
    kept_ms = float(topic.config.get(TOMBSTONES, brokers.get(f"log.cleaner.{TOMBSTONES}", DAY_MS)))
    if kept_ms < 1000 * longest_s:
        yield (
            f"the topic {topic.name!r} is compacted, and its tombstones go after {TOMBSTONES} = {kept_ms:g}: where the "
            "group's own program writes some, nobody could tell a record that one deleted from a record that was lost. "
            f"Use {1000 * longest_s:.0f} or more, the longest that the run may take"
        )


def with_cleaner(topics: Iterable[Topic], brokers: Settings) -> Settings:
    """The settings of the brokers of a cluster of ours: the cleaner runs where a topic is to be compacted."""
    return {CLEANED: True, **brokers} if compacted(topics, brokers) else brokers
