"""Facts to intervals: who owned which partition, which lives members had, when faults were in effect.

Pure: takes the facts of a history, gives values in nanoseconds. ``drawing`` makes pictures of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.reports.folder import Fact

_GIVES_UP = ("revoked", "lost")
_ENDS = ("closed", "ended")


@dataclass(frozen=True)
class Ownership:
    """One assignment interval by the member's own callbacks.

    Certain from ``assigned_ns`` (the assigned callback returned) to ``given_up_ns`` (its giving up began);
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
    """A moment with a name: a rebalance, and what it dealt."""

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
    """``member-2.1`` is a life of ``member-2``."""
    return actor.rsplit(".", 1)[0]


def last_ns(facts: Iterable[Fact]) -> int:
    """The last moment that any fact knows."""
    return max((max(f.begin_ns, f.end_ns) for f in facts), default=0)


def ownership(facts: Sequence[Fact]) -> list[Ownership]:
    """All assignment intervals, in the order in which they began. ``facts`` are in the order of their begins."""
    open_: dict[tuple[str, str], Ownership] = {}
    closed: list[Ownership] = []
    horizon = last_ns(facts)

    def give_up(key: tuple[str, str], begin_ns: int, end_ns: int, how: str) -> None:
        interval = open_.pop(key, None)
        if interval is not None:
            given_up = max(begin_ns, interval.assigned_ns)
            closed.append(replace(interval, given_up_ns=given_up, end_ns=max(end_ns, given_up), how=how))

    for fact in facts:
        partition = f"{fact.topic}-{fact.partition}"
        key = (fact.actor, partition)
        if fact.kind == "assigned" and fact.topic:
            give_up(key, fact.begin_ns, fact.begin_ns, "open")
            returned = fact.end_ns or horizon
            open_[key] = Ownership(
                partition, fact.actor, fact.generation, fact.begin_ns, returned, horizon, horizon, "open"
            )
        elif fact.kind in _GIVES_UP and fact.topic:
            give_up(key, fact.begin_ns, fact.end_ns or fact.begin_ns, fact.kind)
        elif fact.kind in _ENDS:
            how = "closed" if fact.kind == "closed" or fact.detail.get("how") == "closed" else "died"
            for other in [k for k in open_ if k[0] == fact.actor]:
                give_up(other, fact.begin_ns, fact.end_ns or fact.begin_ns, how)
    return sorted([*closed, *open_.values()], key=lambda i: (i.begin_ns, i.partition))


def told_ownership(told: Iterable[Mapping[str, Any]], horizon_ns: int) -> list[Ownership]:
    """The same of black boxes, as the verdict tells it by the coordinator's records; what lasts ends at the horizon."""
    found = [
        Ownership(
            f"{one['topic']}-{one['partition']}",
            one["owner"],
            -1,
            one["begin_ns"],
            one["assigned_ns"],
            one["end_ns"] or horizon_ns,
            one["end_ns"] or horizon_ns,
            "given to another, or to nobody" if one["end_ns"] else "open",
        )
        for one in told
    ]
    return sorted(found, key=lambda i: (i.begin_ns, i.partition))


def lives(facts: Sequence[Fact]) -> list[Lifespan]:
    """All incarnations, in the order of their launch."""
    found: dict[str, Lifespan] = {}
    horizon = last_ns(facts)
    for fact in facts:
        if fact.kind in ("launched", "started"):
            if fact.detail.get("member") is not None or fact.actor.startswith("member-"):
                name = member_of(fact.actor)
                found.setdefault(fact.actor, Lifespan(fact.actor, name, fact.begin_ns, horizon, "open"))
        elif fact.kind in _ENDS and fact.actor in found and found[fact.actor].how == "open":
            how = "closed" if fact.kind == "closed" else str(fact.detail.get("how") or "ended")
            found[fact.actor] = replace(found[fact.actor], end_ns=fact.end_ns or fact.begin_ns, how=how)
    return list(found.values())


def phases(facts: Sequence[Fact]) -> list[Phase]:
    """The phases of the run, in order."""
    horizon = last_ns(facts)
    return [
        Phase(str(f.detail.get("name") or "?"), f.begin_ns, f.end_ns or horizon) for f in facts if f.kind == "phase"
    ]


def rebalances(facts: Sequence[Fact], told: Iterable[Mapping[str, Any]], origin_ns: int) -> list[Mark]:
    """When the group's generation changed: as the verdict tells, else as the assigned callbacks show."""
    marks = [mark for one in told if (mark := _told(one, origin_ns)) is not None]
    if marks:
        return sorted(marks, key=lambda m: m.at_ns)
    first: dict[int, int] = {}
    for fact in facts:
        if fact.kind == "assigned" and fact.generation >= 0:
            first.setdefault(fact.generation, fact.begin_ns)
    return [Mark(at, f"generation {generation}") for generation, at in first.items()]


def _told(one: Mapping[str, Any], origin_ns: int) -> Mark | None:
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
    """``4 moved; 2 to 3 each``, where the verdict says so."""
    moved, most, least = (one.get(name) for name in ("moved", "most", "least"))
    if moved is None:
        return ""
    return f"{moved} moved; {most if most == least else f'{least} to {most}'} each"


def overlaps(intervals: Sequence[Ownership]) -> dict[str, list[tuple[int, Ownership]]]:
    """By partition, each interval with the lane that it is drawn in: intervals of one lane never overlap."""
    rows: dict[str, list[tuple[int, Ownership]]] = defaultdict(list)
    ends: dict[str, list[int]] = defaultdict(list)
    for interval in intervals:
        lanes = ends[interval.partition]
        lane = next((n for n, end in enumerate(lanes) if end <= interval.begin_ns), len(lanes))
        lanes[lane : lane + 1] = [interval.end_ns]
        rows[interval.partition].append((lane, interval))
    return rows
