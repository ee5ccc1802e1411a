"""Derives phases, fault steps, lives of members and assignment intervals from the events of a run. Pure.

The judge and the reports share this. An event is a row of ``events.parquet`` with its ``detail`` decoded; events are
sorted by their start. The judge has checked the shapes of all details; for a report, a detail of another shape is
ignored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from signal import Signals
from typing import Any, NamedTuple

from fencepost.history import HARNESS, OF_MEMBERS, EventKind
from fencepost.history.windows import FOREVER, Window
from fencepost.model import impact
from fencepost.model.impact import Impact

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Life:
    """One incarnation. ``how``: closed, killed (by the harness) or crashed; empty: it did not end.

    Attributes:
        last_sign_ns: time of its last own event.
        closed_ns, ended_ns: when its client was closed, and when its process was reaped.
        paused: when it was proven to be suspended.
        instance_id: its static id; empty: none.
        fatal: the fatal error of its client; empty: none.
        signal: the signal that ended it; empty: none.
        unpolled: times between two polls that are longer than 1 s, and the time from the last poll to its end.
        subscribed: when it changed its subscription.
        asked_ns: when the harness asked it to end (SIGTERM); 0: it did not.
        place: where the program was when it was killed because it did not end; empty: unknown.
        forked: whether its consumer was polled in a forked process, which receives no records.
    """

    incarnation: str
    member: int = -1
    slot: int = -1
    started_ns: int = 0
    ended_ns: int = 0
    how: str = ""
    last_sign_ns: int = 0
    paused: tuple[Window, ...] = ()
    instance_id: str = ""
    fatal: str = ""
    signal: str = ""
    unpolled: tuple[Window, ...] = ()
    subscribed: tuple[Window, ...] = ()
    asked_ns: int = 0
    place: str = ""
    forked: bool = False
    closed_ns: int = 0

    @property
    def alive(self) -> Window:
        """Its lifetime, from start to end."""
        return Window(self.started_ns, self.ended_ns or FOREVER)


class Interval(NamedTuple):
    """One assignment interval, by the member's own callbacks. It certainly owned the partition from ``assigned_end_ns``
    to ``given_up_begin_ns`` and possibly from ``assigned_begin_ns`` to ``given_up_end_ns``.

    Attributes:
        number: counts the intervals of (incarnation, tp) from 0; delivered records refer to it.
        how: revoked, lost, closed, died, or reassigned (assigned again without a revocation); empty: its end is
            unknown. Then ``given_up_begin_ns`` is the time of the member's last event and ``given_up_end_ns`` is 0.
    """

    tp: int
    incarnation: str
    number: int
    generation: int
    member_id: str
    assigned_begin_ns: int
    assigned_end_ns: int
    given_up_begin_ns: int = 0
    given_up_end_ns: int = 0
    how: str = ""

    @property
    def certain(self) -> Window:
        """When it certainly owned the partition; empty when its assigned callback never returned."""
        if not self.assigned_end_ns:
            return Window(0, 0)
        return Window(self.assigned_end_ns, self.given_up_begin_ns)

    @property
    def possible(self) -> Window:
        """When it may have owned the partition."""
        return Window(self.assigned_begin_ns, self.given_up_end_ns if self.how else FOREVER)

    def possible_at(self, at_ns: int) -> bool:
        """Whether it may have owned the partition at ``at_ns``."""
        return self.possible.begin_ns <= at_ns <= self.possible.end_ns


@dataclass(frozen=True)
class PerformedStep:
    """One fault step as it was performed. ``begun_ns``: the inject call; ``proven_ns``: the effect was certainly
    present; ``undone_ns``: the undo call; ``healed_ns``: the effect was certainly gone; ``impact``: see
    ``model.impact``."""

    step: int
    fault: str
    target: str = ""
    members: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    expect: str = ""
    required: bool = True
    heals: bool = False
    begun_ns: int = 0
    proven_ns: int = 0
    undone_ns: int = 0
    healed_ns: int = 0
    evidence: str = ""
    heal_evidence: str = ""
    skipped: str = ""
    impact: frozenset[str] = frozenset()

    @property
    def in_effect(self) -> Window:
        """From its start to its certain end; it must have begun."""
        over_ns = (self.healed_ns or FOREVER) if self.heals else max(self.begun_ns, self.proven_ns)
        return Window(self.begun_ns, over_ns)

    @property
    def name(self) -> str:
        """``step 3 (pause)``."""
        return f"step {self.step} ({self.fault})"


def phases(events: Iterable[Event]) -> dict[str, Window]:
    """The window of each phase, by name; an end of 0 means that it never ended."""
    found = (e for e in events if e["kind"] == EventKind.PHASE)
    return {str(e["detail"].get("name")): Window(e["begin_ns"], e["end_ns"]) for e in found}


def steps(events: Iterable[Event], plan: Iterable[Mapping[str, Any]]) -> tuple[PerformedStep, ...]:
    """Every step of the plan as it was performed; a step without events never fired."""
    found: dict[int, PerformedStep] = {}
    for number, entry in enumerate(plan):
        step = int(entry.get("step", number))
        found[step] = PerformedStep(
            step,
            str((entry.get("fault") or {}).get("type", "")),
            expect=entry.get("expect") or "",
            required=bool(entry.get("required", True)),
            heals=entry.get("heal_after_s") is not None,
        )
    for event in events:
        if event["kind"] not in (EventKind.FAULT, EventKind.HEALED, EventKind.SKIPPED):
            continue
        detail = event["detail"]
        number = int(detail.get("step", -1))
        known = found.get(number) or PerformedStep(number, str(detail.get("fault", "")))
        found[number] = _step_with(known, event, detail)
    return tuple(found[n] for n in sorted(found))


def _step_with(step: PerformedStep, event: Event, detail: Mapping[str, Any]) -> PerformedStep:
    if event["kind"] == EventKind.SKIPPED:
        return replace(step, skipped=str(detail.get("reason") or "nothing matched its target"))
    evidence = detail.get("evidence") or {}
    proven = int(evidence.get("at_ns") or event["end_ns"]) if evidence.get("took_effect") else 0
    what = str(evidence.get("what") or "")
    if event["kind"] == EventKind.HEALED:
        return replace(step, undone_ns=event["begin_ns"], healed_ns=proven, heal_evidence=what)
    return replace(
        step,
        target=str(detail.get("target") or ""),
        members=tuple(detail.get("members") or ()),
        brokers=tuple(detail.get("brokers") or ()),
        expect=detail.get("expect") or step.expect,
        impact=impact.recorded({**detail, "fault": step.fault}),
        begun_ns=event["begin_ns"],
        proven_ns=proven,
        evidence=what,
    )


def lives(events: Sequence[Event], fault_steps: Iterable[PerformedStep]) -> dict[str, Life]:
    """Every incarnation that was launched or that wrote an event, by name; without producers and the harness."""
    found: dict[str, Life] = {}
    last_ns: defaultdict[str, int] = defaultdict(int)
    writers = {HARNESS, *(event["actor"] for event in events if "writer" in event["detail"])}
    for event in events:
        kind, actor = event["kind"], event["actor"]
        own = kind in OF_MEMBERS
        if actor in writers or (not own and kind not in (EventKind.LAUNCHED, EventKind.ENDED)):
            continue
        found[actor] = _life_with(found.get(actor) or Life(actor, _member_number(actor)), event)
        if own:
            last_ns[actor] = max(last_ns[actor], event["begin_ns"], event["end_ns"])
    found = {actor: replace(life, last_sign_ns=last_ns[actor]) for actor, life in found.items()}
    for step in fault_steps:
        if Impact.FREEZES in step.impact and step.proven_ns:
            for actor in step.members:
                life = found.get(actor) or Life(actor, _member_number(actor))
                window = Window(step.proven_ns, step.undone_ns or life.ended_ns or FOREVER)
                found[actor] = replace(life, paused=(*life.paused, window))
    return found


def _life_with(life: Life, event: Event) -> Life:
    kind, detail = event["kind"], event["detail"]
    if kind in (EventKind.STARTED, EventKind.LAUNCHED):
        return replace(
            life,
            slot=_number(detail, "slot", life.slot),
            member=_number(detail, "member", life.member),
            started_ns=min(life.started_ns or event["begin_ns"], event["begin_ns"]),
            instance_id=str(detail.get("instance_id") or life.instance_id),
        )
    if kind == EventKind.ERROR and detail.get("fatal"):
        return replace(life, fatal=life.fatal or str(event["error"] or "unknown"))
    if kind == EventKind.SUBSCRIBED:
        return replace(
            life, subscribed=(*life.subscribed, Window(event["begin_ns"], event["end_ns"] or event["begin_ns"]))
        )
    if kind == EventKind.CLOSED:
        return replace(life, closed_ns=event["end_ns"] or event["begin_ns"])
    if kind == EventKind.FORKED:
        return replace(life, forked=True)
    if kind == EventKind.POLL_GAP:
        return replace(life, unpolled=(*life.unpolled, Window(event["begin_ns"], event["end_ns"])))
    if kind == EventKind.ENDED:
        how, ended_ns = str(detail.get("how") or "crashed"), event["end_ns"] or event["begin_ns"]
        polled_ns = _number(detail, "polled_ns")
        last = (Window(polled_ns, ended_ns),) if polled_ns else ()
        signal, asked_ns = _signal(detail.get("exit_code")), _number(detail, "asked_ns")
        life = replace(life, signal=signal, asked_ns=asked_ns, unpolled=(*life.unpolled, *last))
        return replace(life, ended_ns=ended_ns, how=how, place=str(detail.get("place") or ""))
    return life


def _number(detail: Mapping[str, Any], name: str, default: int = 0) -> int:
    found = detail.get(name)
    return found if isinstance(found, int) else default


def _signal(exit_code: Any) -> str:
    """The name of the signal of a negative exit code of ``subprocess``; empty: none."""
    if not isinstance(exit_code, int) or exit_code >= 0:
        return ""
    try:
        return Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _member_number(actor: str) -> int:
    """The 2 of ``member-2.1`` and of ``member-2b.1-3``; -1 for names of another form."""
    number = actor.rpartition(".")[0].rpartition("-")[2].partition(".")[0].rstrip("bcdefghijklmnopqrstuvwxyz")
    return int(number) if number.isdecimal() else -1


def intervals(
    events: Iterable[Event], known: Mapping[str, Life], numbers: Mapping[tuple[str, int], int]
) -> tuple[Interval, ...]:
    """The assignment intervals of all incarnations, ordered by partition and time.

    If an assigned callback never ended, ``assigned_end_ns`` is 0. If a revoked or lost callback never ended, the
    interval ends with the incarnation.
    """
    done: list[Interval] = []
    open_: defaultdict[str, dict[int, Interval]] = defaultdict(dict)
    used: dict[tuple[str, int], int] = defaultdict(int)

    def give_up(actor: str, tp: int, begin_ns: int, end_ns: int, how: str) -> None:
        if tp in open_[actor]:
            interval = open_[actor].pop(tp)
            done.append(interval._replace(given_up_begin_ns=begin_ns, given_up_end_ns=end_ns, how=how))

    for event in events:
        kind, actor = event["kind"], event["actor"]
        begin, end = event["begin_ns"], event["end_ns"]
        ended = end or death_ns(known.get(actor))
        if kind == EventKind.CLOSED:
            for held in [*open_[actor]]:
                give_up(actor, held, begin, ended, "closed")
        tp = numbers.get((event["topic"] or "", -1 if event["partition"] is None else event["partition"]))
        if tp is None:
            continue
        if kind == EventKind.ASSIGNED:
            give_up(actor, tp, begin, begin, "reassigned")
            member_id, generation = event["member_id"] or "", _generation(event)
            open_[actor][tp] = Interval(tp, actor, used[actor, tp], generation, member_id, begin, end)
            used[actor, tp] += 1
        elif kind in (EventKind.REVOKED, EventKind.LOST):
            give_up(actor, tp, begin, ended, str(kind) if end else "died")
    for actor, still in open_.items():
        life = known.get(actor, Life(actor))
        for tp, interval in [*still.items()]:
            last_sign = max(interval.assigned_begin_ns, life.last_sign_ns)
            give_up(actor, tp, last_sign, life.ended_ns, "died" if life.ended_ns else "")
    return tuple(sorted(done, key=lambda i: (i.tp, i.assigned_begin_ns, i.incarnation)))


def death_ns(life: Life | None) -> int:
    """When the incarnation ended; FOREVER if that is unknown."""
    return life.ended_ns if life is not None and life.ended_ns else FOREVER


def _generation(event: Event) -> int:
    return -1 if event["generation"] is None else int(event["generation"])


def placed(
    events: Iterable[Event], numbers: Mapping[tuple[str, int], int], kind: EventKind, anywhere: bool = False
) -> list[tuple[Event, Any]]:
    """The events of one kind, each with the number of its partition; events without a known partition (None) only if
    ``anywhere``."""
    found = [(e, numbers.get((e["topic"] or "", e["partition"]))) for e in events if e["kind"] == kind]
    return [(e, tp) for e, tp in found if tp is not None or anywhere]
