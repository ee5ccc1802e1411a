"""Detections, one record (or event) each, and their aggregation into anomalies. Every detector uses this."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fencepost.checkers.tables.rows import Partition
from fencepost.model import Anomaly

S = TypeVar("S")
_LOG = logging.getLogger(__name__)
DELETED = "deleted"  # excuse: the record had already been deleted at the start of the log
EXPIRED = "committed offset expired"  # excuse for a second processing: the coordinator had deleted the committed offset
COMPACTED = "compacted"  # excuse: a later record of its key had replaced the record


@dataclass(frozen=True)
class Detection:
    """One record, commit or interval that shows an anomaly. ``count`` is how many it stands for."""

    kind: str
    tp: int
    members: tuple[str, ...] = ()
    cause: str = ""
    excuse: str = ""
    offset: int = -1
    from_ns: int = 0
    to_ns: int = 0
    count: int = 1


def run_rules(
    rules: Mapping[Callable[[S], Iterable[Detection]], tuple[str, ...]], subject: S
) -> tuple[list[Detection], dict[str, str]]:
    """The detections of all rules in ``subject``, and the kinds that could not be judged, with the reason.

    A rule that crashes fails only its own kinds: a defect in one rule must not hide the findings of the others.
    """
    found: list[Detection] = []
    failed: dict[str, str] = {}
    for rule, kinds in rules.items():
        try:
            found += rule(subject)
        except Exception as error:
            _LOG.exception("the rule %s failed", rule.__name__)
            failed.update(dict.fromkeys(kinds, f"the rule {rule.__name__} failed: {type(error).__name__}: {error}"))
    return found, failed


def aggregate(detections: Iterable[Detection], partitions: Mapping[int, Partition]) -> list[Anomaly]:
    """One anomaly for each (kind, cause, excuse, partition, members), sorted.

    ``count`` is the sum of the counts; the offsets are the smallest and the greatest that are not -1, the times the
    earliest ``from_ns`` and the latest ``to_ns`` that are not 0.
    """
    groups: dict[tuple[str, int, tuple[str, ...], str, str], list[Detection]] = defaultdict(list)
    for detection in detections:
        groups[detection.kind, detection.tp, detection.members, detection.cause, detection.excuse].append(detection)
    found = []
    for (kind, tp, members, cause, excuse), group in groups.items():
        name = partitions[tp].name if tp in partitions else ("", -1)
        offsets = [s.offset for s in group if s.offset >= 0]
        found.append(
            Anomaly(
                kind=kind,
                topic=name[0],
                partition=name[1],
                members=members,
                cause=cause,
                excuse=excuse,
                first_offset=min(offsets, default=-1),
                last_offset=max(offsets, default=-1),
                from_ns=min((s.from_ns for s in group if s.from_ns), default=0),
                to_ns=max((s.to_ns for s in group), default=0),
                count=sum(s.count for s in group),
            )
        )
    return sorted(found)


def blamed(*names: str) -> tuple[str, ...]:
    """The members of a detection: the one to blame first, without duplicates and unknown (empty) names."""
    return tuple(dict.fromkeys(name for name in names if name))


def member_of(incarnation: str) -> str:
    """The member that an incarnation belongs to; the names of members may contain dots."""
    return incarnation.rpartition(".")[0]
