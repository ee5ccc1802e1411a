"""The rows of the timeline as values: owners of partitions, lives of members, phases and rebalances of the run.

Pure: from the facts of a history to values in nanoseconds, which ``drawing`` draws. ``history.events`` interprets the
facts; here an interval without an end lasts until the last fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.history import events
from fencepost.history.events import Event, Interval, Life
from fencepost.reports.folder import Fact


@dataclass(frozen=True)
class OwnershipInterval:
    """One assignment interval, by the member's own callbacks.

    Ownership is certain from ``assigned_ns`` (the assigned callback returned) to ``given_up_ns`` (revocation began);
    ``begin_ns`` and ``end_ns`` are the outer bounds. ``how``: revoked, lost, closed, died, or open.
    """

    partition: str
    owner: str
    generation: int
    begin_ns: int
    assigned_ns: int
    given_up_ns: int
    end_ns: int
    how: str


@dataclass(frozen=True)
class Lifespan:
    """One incarnation of a member: from its launch to its end; ``how``: closed, killed, crashed or open."""

    incarnation: str
    member: str
    begin_ns: int
    end_ns: int
    how: str


@dataclass(frozen=True)
class Mark:
    """A rebalance, as a moment with a name; ``dealt`` describes its assignment."""

    at_ns: int
    label: str
    detail: str = ""
    dealt: str = ""


@dataclass(frozen=True)
class Phase:
    """One phase of the run."""

    name: str
    begin_ns: int
    end_ns: int


def member_of(actor: str) -> str:
    """The member of an incarnation: ``member-2`` for ``member-2.1``."""
    return actor.rsplit(".", 1)[0]


def last_ns(facts: Iterable[Fact]) -> int:
    """The latest time of all facts; 0 without any."""
    return max((max(f.begin_ns, f.end_ns) for f in facts), default=0)


def ownership(facts: Sequence[Fact]) -> list[OwnershipInterval]:
    """All assignment intervals, by their start. ``facts`` must be sorted by their start."""
    rows, horizon = _events(facts), last_ns(facts)
    places = sorted({(fact.topic, fact.partition) for fact in facts if fact.topic})
    names = [f"{topic}-{partition}" for topic, partition in places]
    known = events.lives(rows, ())
    intervals = events.intervals(rows, known, {place: tp for tp, place in enumerate(places)})
    found = [_owned(i, names[i.tp], known.get(i.incarnation), horizon) for i in intervals]
    return sorted(found, key=lambda i: (i.begin_ns, i.partition))


def _owned(interval: Interval, partition: str, life: Life | None, horizon_ns: int) -> OwnershipInterval:
    """An interval as it is drawn. One that ended with its process is drawn as certain until that end."""
    how = interval.how if interval.how not in ("", "reassigned") else "open"
    if how == "died" and life and life.how == "closed":
        how = "closed"
    assigned_ns = interval.assigned_end_ns or horizon_ns
    end_ns = min(interval.given_up_end_ns, horizon_ns) if interval.how else horizon_ns
    given_up_ns = end_ns if interval.how in ("", "died") else interval.given_up_begin_ns
    given_up_ns = max(given_up_ns, assigned_ns)
    return OwnershipInterval(
        partition,
        interval.incarnation,
        interval.generation,
        interval.assigned_begin_ns,
        assigned_ns,
        given_up_ns,
        max(end_ns, given_up_ns),
        how,
    )


def ownership_of_verdict(rows: Iterable[Mapping[str, Any]], horizon_ns: int) -> list[OwnershipInterval]:
    """The same for black boxes, from the verdict's ``owners``, which are derived from the coordinator's records. An
    interval without an end lasts until the horizon."""
    found = [
        OwnershipInterval(
            f"{one['topic']}-{one['partition']}",
            one["owner"],
            -1,
            one["begin_ns"],
            one["assigned_ns"],
            one["end_ns"] or horizon_ns,
            one["end_ns"] or horizon_ns,
            "assigned to another member or to none" if one["end_ns"] else "open",
        )
        for one in rows
    ]
    return sorted(found, key=lambda i: (i.begin_ns, i.partition))


def lives(facts: Sequence[Fact]) -> list[Lifespan]:
    """All incarnations of members, by their start."""
    horizon = last_ns(facts)
    known = sorted(events.lives(_events(facts), ()).values(), key=lambda life: life.started_ns)
    return [
        Lifespan(
            life.incarnation,
            member_of(life.incarnation),
            life.started_ns,
            life.closed_ns or life.ended_ns or horizon,
            "closed" if life.closed_ns else life.how or "open",
        )
        for life in known
        if life.started_ns and life.member >= 0
    ]


def phases(facts: Sequence[Fact]) -> list[Phase]:
    """The phases of the run, in order."""
    horizon = last_ns(facts)
    return [Phase(name, at.begin_ns, at.end_ns or horizon) for name, at in events.phases(_events(facts)).items()]


def _events(facts: Iterable[Fact]) -> list[Event]:
    return [{**fact._asdict(), "member_id": "", "error": ""} for fact in facts]


def rebalances(facts: Sequence[Fact], rows: Iterable[Mapping[str, Any]], origin_ns: int) -> list[Mark]:
    """The changes of the group's generation: from the verdict, or else from the assigned callbacks."""
    marks = [mark for one in rows if (mark := _mark_of(one, origin_ns)) is not None]
    if marks:
        return sorted(marks, key=lambda m: m.at_ns)
    first: dict[int, int] = {}
    for fact in facts:
        if fact.kind == "assigned" and fact.generation >= 0:
            first.setdefault(fact.generation, fact.begin_ns)
    return [Mark(at, f"generation {generation}") for generation, at in first.items()]


def _mark_of(one: Mapping[str, Any], origin_ns: int) -> Mark | None:
    at_ns = next((one[k] for k in ("begin_ns", "at_ns", "from_ns") if isinstance(one.get(k), int)), 0)
    at_s = next((one[k] for k in ("begin_s", "at_s", "begun_s") if isinstance(one.get(k), (int, float))), None)
    if at_s is None:
        if not at_ns:
            return None
        at_s = 0
    number = next((one[k] for k in ("generation", "epoch") if one.get(k) is not None), "?")
    why = str(one.get("cause") or one.get("reason") or "")
    if isinstance(one.get("step"), int):
        why += f"{', ' if why else ''}during or after step {one['step']}"
    return Mark(at_ns or origin_ns + int(at_s * 1e9), f"generation {number}", why, _dealt(one))


def _dealt(one: Mapping[str, Any]) -> str:
    """``4 moved; 2 to 3 each``: moved partitions, and partitions of each member; empty if the verdict has no counts."""
    moved, most, least = (one.get(name) for name in ("moved", "most", "least"))
    if moved is None:
        return ""
    return f"{moved} moved; {most if most == least else f'{least} to {most}'} each"


def overlaps(intervals: Sequence[OwnershipInterval]) -> dict[str, list[tuple[int, OwnershipInterval]]]:
    """By partition, each interval with the lane in which it is drawn. Intervals of one lane never overlap."""
    rows: dict[str, list[tuple[int, OwnershipInterval]]] = defaultdict(list)
    ends: dict[str, list[int]] = defaultdict(list)
    for interval in intervals:
        lanes = ends[interval.partition]
        lane = next((n for n, end in enumerate(lanes) if end <= interval.begin_ns), len(lanes))
        lanes[lane : lane + 1] = [interval.end_ns]
        rows[interval.partition].append((lane, interval))
    return rows
