"""Events to phases, lives, assignment intervals and fault steps. Pure; called by ``tables.load`` alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from signal import Signals
from typing import Any

from fencepost.checkers.tables.rows import FOREVER, Commit, Interval, Life, Step, Stray, Window
from fencepost.history import HARNESS, OF_MEMBERS, EventKind
from fencepost.model import impact
from fencepost.model.impact import Impact

Event = Mapping[str, Any]


def phases(events: Iterable[Event]) -> dict[str, Window]:
    """The window of each phase by name; an end of 0 means that it never ended."""
    found = (e for e in events if e["kind"] == EventKind.PHASE)
    return {str(e["detail"].get("name")): Window(e["begin_ns"], e["end_ns"]) for e in found}


def broken_off(windows: Mapping[str, Window]) -> str:
    """In which phase the run was interrupted: the first one that never ended; empty when there is none."""
    endless = [(window.begin_ns, name) for name, window in windows.items() if not window.end_ns]
    return min(endless, default=(0, ""))[1]


def steps(events: Iterable[Event], plan: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """One row per step of the plan, with what happened to it; a step without any event never fired."""
    found: dict[int, Step] = {}
    for number, entry in enumerate(plan):
        step = int(entry.get("step", number))
        found[step] = Step(
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
        known = found.get(number) or Step(number, str(detail.get("fault", "")))
        found[number] = _step_with(known, event, detail)
    return tuple(found[n] for n in sorted(found))


def _step_with(step: Step, event: Event, detail: Mapping[str, Any]) -> Step:
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


def lives(events: Sequence[Event], fault_steps: Iterable[Step]) -> dict[str, Life]:
    """Every incarnation that was launched or that wrote an event; producers, and the harness, have no place here."""
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
            slot=int(detail.get("slot", life.slot)),
            member=int(detail.get("member", life.member)),
            started_ns=min(life.started_ns or event["begin_ns"], event["begin_ns"]),
            instance_id=str(detail.get("instance_id") or life.instance_id),
        )
    if kind == EventKind.ERROR and detail.get("fatal"):
        return replace(life, fatal=life.fatal or str(event["error"] or "unknown"))
    if kind == EventKind.SUBSCRIBED:
        return replace(
            life, subscribed=(*life.subscribed, Window(event["begin_ns"], event["end_ns"] or event["begin_ns"]))
        )
    if kind == EventKind.FORKED:
        return replace(life, forked=True)
    if kind == EventKind.POLL_GAP:
        return replace(life, unpolled=(*life.unpolled, Window(event["begin_ns"], event["end_ns"])))
    if kind == EventKind.ENDED:
        how, ended_ns = str(detail.get("how") or "crashed"), event["end_ns"] or event["begin_ns"]
        polled_ns = int(detail.get("polled_ns") or 0)
        last = (Window(polled_ns, ended_ns),) if polled_ns else ()
        signal, asked_ns = _signal(detail.get("exit_code")), int(detail.get("asked_ns") or 0)
        life = replace(life, signal=signal, asked_ns=asked_ns, unpolled=(*life.unpolled, *last))
        return replace(life, ended_ns=ended_ns, how=how)
    return life


def _signal(exit_code: Any) -> str:
    """The signal behind an exit code of ``subprocess``, which is negative then; empty: none."""
    if not isinstance(exit_code, int) or exit_code >= 0:
        return ""
    try:
        return Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def unguarded(events: Iterable[Event]) -> frozenset[int]:
    """The writers that started, and whose client's settings do not say that it is idempotent (its default is not)."""
    started = (e["detail"] for e in events if e["kind"] == EventKind.STARTED and "writer" in e["detail"])
    settings = {int(detail["writer"]): detail.get("config") or {} for detail in started}
    return frozenset(w for w, s in settings.items() if str(s.get("enable.idempotence", False)).lower() != "true")


def protocols(events: Iterable[Event]) -> frozenset[str]:
    """Those by which members started."""
    started = (e["detail"] for e in events if e["kind"] == EventKind.STARTED and "member" in e["detail"])
    return frozenset(filter(None, (detail.get("protocol") for detail in started)))


def _member_number(actor: str) -> int:
    """The 2 of ``member-2.1`` and of ``member-2b.1-3``; -1 for another kind of name."""
    number = actor.rpartition(".")[0].rpartition("-")[2].partition(".")[0].rstrip("bcdefghijklmnopqrstuvwxyz")
    return int(number) if number.isdecimal() else -1


def intervals(
    events: Iterable[Event], known: Mapping[str, Life], numbers: Mapping[tuple[str, int], int]
) -> tuple[Interval, ...]:
    """The assignment intervals of all incarnations, ordered by partition and time.

    A callback that began and never ended leaves ``assigned_end_ns`` 0 or, giving up, the end of the life as its end.
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


def strays(
    events: Iterable[Event], known: Iterable[Interval], numbers: Mapping[tuple[str, int], int]
) -> tuple[Stray, ...]:
    """The callbacks that told an incarnation to give up what it did not have: no interval ended by them."""
    ended = {(i.incarnation, i.tp, i.given_up_begin_ns) for i in known}
    found = [(e, tp) for kind in (EventKind.REVOKED, EventKind.LOST) for e, tp in placed(events, numbers, kind)]
    strange = [(e, tp) for e, tp in found if (e["actor"], tp, e["begin_ns"]) not in ended]
    return tuple(Stray(tp, e["actor"], Window(e["begin_ns"], e["end_ns"] or e["begin_ns"])) for e, tp in strange)


def death_ns(life: Life | None) -> int:
    """When it ended; FOREVER when that is not known."""
    return life.ended_ns if life is not None and life.ended_ns else FOREVER


def _generation(event: Event) -> int:
    return -1 if event["generation"] is None else int(event["generation"])


def commits(events: Iterable[Event], numbers: Mapping[tuple[str, int], int]) -> tuple[Commit, ...]:
    """A commit that was never answered (its member died) has end 0 and outcome ``info``."""
    return tuple(
        Commit(
            tp=tp,
            offset=-1 if e["offset"] is None else e["offset"],
            incarnation=e["actor"],
            member_id=e["member_id"] or "",
            generation=-1 if e["generation"] is None else e["generation"],
            begin_ns=e["begin_ns"],
            end_ns=e["end_ns"],
            outcome=(e["outcome"] or "info") if e["end_ns"] else "info",
            error=e["error"] or "",
            mode=str(e["detail"].get("mode") or ""),
            asked=_stored(e),
        )
        for e, tp in placed(events, numbers, EventKind.COMMIT)
    )


def _stored(event: Event) -> int | None:
    """What the client had stored of the partition when it was asked to commit that; see ``Commit.asked``."""
    if event["detail"].get("asked") is None:
        return None
    place = (event["topic"], event["partition"])
    return next((offset for *of, offset in event["detail"]["asked"] if tuple(of) == place), -1)


def placed(
    events: Iterable[Event], numbers: Mapping[tuple[str, int], int], kind: EventKind, anywhere: bool = False
) -> list[tuple[Event, Any]]:
    """The events of a kind with the number of their partition; without a known partition only if ``anywhere``."""
    found = [(e, numbers.get((e["topic"] or "", e["partition"]))) for e in events if e["kind"] == kind]
    return [(e, tp) for e, tp in found if tp is not None or anywhere]
