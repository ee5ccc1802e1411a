"""Refuses plans with compacted topics that could not be judged.

Compaction keeps only the last record of each key. Afterwards, a later record of the same key is the only evidence that
a missing record was compacted and not lost. Settings that could remove this later record too are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fencepost.errors import PlanError, refuse
from fencepost.model.settings import CLEANED, CLEANUP, DAY_MS, TOMBSTONES, ConfigValue
from fencepost.schedule.selectors import partition_of

if TYPE_CHECKING:
    from fencepost.model.topic import Topic
    from fencepost.schedule.plan import Step

Settings = Mapping[str, ConfigValue]
BESIDE_S = 120.0  # the longest time that a run needs in addition to chaos and drain: for warm-up and audit
# Broker settings that make segments of __consumer_offsets so short that they are compacted during a run.
ROLLING = (
    *("log.roll.ms", "log.roll.hours", "log.segment.ms", "log.cleaner.max.compaction.lag.ms"),
    "offsets.topic.segment.bytes",
)


def policies(topic: Settings, brokers: Settings) -> frozenset[str]:
    """The ``cleanup.policy`` of a topic: delete, compact, or both. ``brokers``: the brokers' settings."""
    asked = topic.get(CLEANUP, brokers.get(f"log.{CLEANUP}", "delete"))
    return frozenset(policy.strip() for policy in str(asked).split(","))


def compacted(topics: Iterable[Topic], brokers: Settings) -> list[Topic]:
    """The compacted ones of some topics."""
    return [topic for topic in topics if "compact" in policies(topic.config, brokers)]


def check(topics: Iterable[Topic], brokers: Settings, steps: Iterable[Step], longest_s: float, program: bool) -> None:
    """Refuse a plan with compacted topics if it could not be judged or performed.

    Args:
        longest_s: how long chaos and drain may take.
        program: whether the members run a program of the user's.

    Raises:
        PlanError: lists everything that is wrong, and what to use instead.
    """
    refuse(map(PlanError, _wrong(topics, brokers, steps, longest_s, program)))


def _wrong(
    topics: Iterable[Topic], brokers: Settings, steps: Iterable[Step], longest_s: float, program: bool
) -> Iterator[str]:
    found = compacted(topics, brokers)
    if found and (rolling := [name for name in ROLLING if name in brokers]):
        yield (
            f"the brokers' setting {rolling[0]} would make them compact not only the topic {found[0].name!r} but also "
            "__consumer_offsets, and with it the group's commits: use the topic's own segment.ms, segment.bytes or "
            "max.compaction.lag.ms"
        )
    for topic in found if program else ():
        yield from _short_lived_tombstones(topic, brokers, longest_s + BESIDE_S)
    whole = [topic.name for topic in found if "delete" not in policies(topic.config, brokers)]
    for step in steps:
        if "deletion" in step.fault.needs:
            named = {partition_of(name).topic for name in getattr(step.fault, "partitions", ())} or {*whole}
            if refused := sorted(named & {*whole}):
                yield (
                    f"{step.named}: Kafka deletes no records of the topic {refused[0]!r}, which is only compacted: "
                    f"use {CLEANUP}=compact,delete"
                )


def _short_lived_tombstones(topic: Topic, brokers: Settings, longest_s: float) -> Iterator[str]:
    """Our producers write no tombstones, but a user's program may. After a tombstone is removed, its key is unknown."""
    kept_ms = float(topic.config.get(TOMBSTONES, brokers.get(f"log.cleaner.{TOMBSTONES}", DAY_MS)))
    if kept_ms < 1000 * longest_s:
        yield (
            f"the topic {topic.name!r} is compacted, and its tombstones are removed after {TOMBSTONES} = {kept_ms:g}: "
            "if the group's own program writes tombstones, a record that one deleted looks like a lost record. "
            f"Use {1000 * longest_s:.0f} or more, the longest duration of the run in ms"
        )


def with_cleaner(topics: Iterable[Topic], brokers: Settings) -> Settings:
    """The brokers' settings for a new cluster: the log cleaner is enabled if a topic is compacted."""
    return {CLEANED: True, **brokers} if compacted(topics, brokers) else brokers
