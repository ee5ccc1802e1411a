"""Performs a plan: fires each step at its time, proves it, heals it, and undoes everything at the end.

The injector does not sleep until a step is due. The runner calls it again and again to do what is due; in each call it
also watches, for a moment, for the protocol states that trigger steps. A step that was planned for after the end of
another fault waits for that end, however late it is. A step that could not be performed or proven does not end the run:
its event records the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from fencepost.clock import NS, now_ns
from fencepost.errors import FencepostError
from fencepost.history import EventKind
from fencepost.interfaces import DeclaresAction, Evidence, FaultContext, HasImpact, Injection, Target
from fencepost.interfaces.group_snapshot import GroupSnapshot, StateMatch
from fencepost.model import Outcome, serialization
from fencepost.runner.state_watcher import PendingTrigger, StateWatcher
from fencepost.runner.target_resolution import resolve_target
from fencepost.schedule.plan import Plan, Step
from fencepost.schedule.protocol_states import lasting, met
from fencepost.witnesses.base import run_between_looks
from fencepost_member.recording.events import EventLog

_LOG = logging.getLogger(__name__)
TARGET_WINDOW_S = 5.0  # how long a step without a target is tried again before it is not applicable
LOOK_FOR_S = 0.1  # how long one call watches for states
AGAIN_S = 0.1  # delay before a step that could not fire is tried again
# The stages of a step; a step that was not proven stays unproven when it is healed.
Stage = Literal["pending", "in-effect", "unproven", "healed", "not-healed", "done", "not-applicable"]


@dataclass(frozen=True)
class StepState:
    """The stage of one step, its target, and the latest evidence of its witness."""

    step: Step
    state: Stage = "pending"
    target: str = ""
    evidence: str = ""


@dataclass(eq=False)
class _InEffect:
    step: Step
    target: Target
    injection: Injection
    detail: dict[str, Any] = field(default_factory=dict)


class _Due(NamedTuple):
    at_s: float
    do: Callable[[], None]
    heals: bool = False


class Injector:
    """Performs the steps of ``plan`` on ``world`` and records the outcome in ``events``.

    It keeps in ``disturbed`` the members that a fault affects now, for the world's view. ``signs`` returns the state of
    the group, for steps that wait for a protocol state.
    """

    def __init__(
        self, plan: Plan, world: FaultContext, events: EventLog, disturbed: set[int], signs: Callable[[], GroupSnapshot]
    ) -> None:
        """Nothing happens before ``begin``."""
        self._world, self._events, self._disturbed = world, events, disturbed
        self._watch = StateWatcher(signs)
        self.states = [StepState(step) for step in plan.steps]
        self._began_ns = 0
        self._in_effect: list[_InEffect] = []
        self._agenda = [_Due(step.at_s, partial(self._arm, step)) for step in plan.steps]

    def begin(self) -> None:
        """Start: the group is warm, and the times of the plan count from now."""
        self._began_ns = now_ns()

    @property
    def elapsed_s(self) -> float:
        """Seconds since ``begin``."""
        return (now_ns() - self._began_ns) / NS

    @property
    def finished(self) -> bool:
        """All steps have fired (or found no target), and every step with a healing time is healed."""
        return not self._agenda and not self._watch.waits

    def do_what_is_due(self) -> None:
        """Fire and heal everything that is due, one after the other, in the order of their times.

        Each step looks up its target, injects (or undoes) and waits for the proof. A step that becomes due meanwhile
        fires late. Healing by time is not delayed: it also happens while another step waits for its proof, which may
        never arrive.
        """
        with run_between_looks(partial(self._perform, only_heal=True)):
            self._perform()
            self._watch.look(LOOK_FOR_S)

    def skip_all(self, reason: str) -> None:
        """Record each step as skipped, for this reason."""
        self._agenda.clear()
        for state in list(self.states):
            self._skip(state.step, reason)

    def undo_all(self) -> None:
        """Undo the faults that are still in effect, the latest first; steps that have not fired are dropped."""
        self._agenda.clear()
        self._watch.waits.clear()
        while self._in_effect:
            self._heal(self._in_effect[-1])

    @contextmanager
    def undone_on_exit(self) -> Iterator[None]:
        """Undo all faults, however the block ends."""
        with ExitStack() as stack:
            stack.callback(self.undo_all)
            yield

    def _perform(self, only_heal: bool = False) -> None:
        """Do what is due, the earliest first; of equal times, what was added first."""
        while due := [item for item in self._agenda if item.at_s <= self.elapsed_s and (item.heals or not only_heal)]:
            first = min(due, key=attrgetter("at_s"))
            self._agenda.remove(first)
            first.do()

    def _arm(self, step: Step) -> None:
        """Fire a step, or wait for its state first. Faults that were planned to end before it must have ended."""
        if any(step.at_s > other.step.at_s and step.at_s >= other.step.end_s for other in self._in_effect):
            self._agenda.append(_Due(self.elapsed_s + AGAIN_S, partial(self._arm, step)))
        elif step.when is None:
            self._fire(step)
        else:
            since_ns, reason = (
                now_ns(),
                f"the state {serialization.name_of(step.when)} was not seen within {step.within_s:g} s",
            )
            fire, skip = partial(self._fire, step, None), partial(self._skip, step, reason)
            until_ns = since_ns + int(step.within_s * NS)
            self._watch.waits.append(PendingTrigger(step.when, since_ns, fire, (), until_ns, missed=skip))

    def _fire(self, step: Step, until_s: float | None = None, occurrence: StateMatch | None = None) -> None:
        """Inject and prove one step. A step without a target is tried again until ``until_s`` and then skipped."""
        aimed = resolve_target(step, self._world, occurrence)
        if isinstance(aimed, str):
            self._skip(step, aimed) if occurrence else self._again_or_never(step, until_s, aimed)
            return
        target, incarnations = aimed
        hit = str(target) if step.hits else ""  # a fault that chooses its target itself names it in its evidence
        detail = {**_describe(step), "target": hit, "members": incarnations, "brokers": list(target.brokers)}
        event, entry, since_ns = self._events.begin(EventKind.FAULT, detail=detail), None, now_ns()
        try:
            injection = step.fault.inject(self._world, target)
        except Exception as error:  # a defect of one fault fails its step only
            evidence = Evidence(False, now_ns(), f"could not be injected: {_error_text(error)}")
        else:
            if isinstance(injection, DeclaresAction) and injection.acts:
                what = {"what": serialization.name_of(step.fault)} | ({"renews": True} if injection.recreates else {})
                times = {"begin_ns": since_ns, "end_ns": now_ns()}
                self._events.note(EventKind.ACT, **times, partitions=injection.acts, detail=what)
            detail |= self._states(step, occurrence)
            entry = _InEffect(step, target, injection, detail)
            self._in_effect.append(entry)
            self._disturbed.update(target.members)
            evidence = _proof(injection)
        self._record(event, detail, evidence)
        state = "in-effect" if evidence.took_effect else "unproven"
        self._mark(step, state=state, target=hit, evidence=evidence.what)
        if entry and step.heal_after_s is None:
            self._in_effect.remove(entry)
            self._let_go(target)
            self._mark(step, state="done" if evidence.took_effect else "unproven")
        elif entry and step.heal_after_s is not None:
            heal = partial(self._heal, entry)
            if step.until:
                until_ns = now_ns() + int(step.heal_after_s * NS)
                self._watch.waits.append(
                    PendingTrigger(step.until, since_ns, heal, target.members, until_ns, missed=heal)
                )
            else:
                self._agenda.append(_Due(self.elapsed_s + step.heal_after_s, heal, heals=True))

    def _states(self, step: Step, occurrence: StateMatch | None) -> dict[str, Any]:
        """The protocol states of members and coordinator just after the injection: the states that the fault met."""
        signs = self._watch.now()
        states = {"injected_ns": now_ns(), "states": lasting(signs)}
        return {**states, "when": met(step.when, occurrence, signs)} if step.when and occurrence else states

    def _again_or_never(self, step: Step, until_s: float | None, reason: str) -> None:
        """Try again until ``until_s``, then skip. None: the first attempt, at which the window begins, however late."""
        now_s = self.elapsed_s
        until_s = now_s + TARGET_WINDOW_S if until_s is None else until_s
        if now_s < until_s:
            self._agenda.append(_Due(now_s + AGAIN_S, partial(self._fire, step, until_s)))
        else:
            self._skip(step, f"{reason} for {TARGET_WINDOW_S:g} s")

    def _skip(self, step: Step, reason: str) -> None:
        self._mark(step, state="not-applicable", evidence=reason)
        self._events.note(EventKind.SKIPPED, detail={**_describe(step), "reason": reason})

    def _heal(self, entry: _InEffect, occurrence: StateMatch | None = None) -> None:
        """Undo one fault. ``occurrence`` is the state that ends it; None: its time is over. A failure is recorded and
        does not prevent other faults from being undone."""
        self._in_effect.remove(entry)
        if entry.step.until:
            since_ns = occurrence.since_ns if occurrence else 0
            entry.detail["until"] = {"state": serialization.name_of(entry.step.until), "since_ns": since_ns}
        event = self._events.begin(EventKind.HEALED, detail=entry.detail)
        try:
            entry.injection.undo()
            evidence = entry.injection.healed()
        except Exception as error:  # a defect of one fault must not prevent the others from being undone
            evidence = Evidence(False, now_ns(), f"could not be undone: {_error_text(error)}")
            _LOG.warning("step %d %s", entry.step.step, evidence.what)
        self._let_go(entry.target)
        self._record(event, entry.detail, evidence)
        before, ended = self.states[entry.step.step].state, "healed" if evidence.took_effect else "not-healed"
        self._mark(entry.step, state=ended if before == "in-effect" else before, evidence=evidence.what)

    def _let_go(self, target: Target) -> None:
        """A fault on ``target`` has ended; its members that another fault affects stay disturbed."""
        still_hit = {m for other in self._in_effect for m in other.target.members}
        self._disturbed.difference_update(set(target.members) - still_hit)

    def _record(self, event: int, detail: dict[str, Any], evidence: Evidence) -> None:
        outcome = Outcome.OK if evidence.took_effect else Outcome.INFO
        self._events.end(event, outcome=outcome, detail={**detail, "evidence": asdict(evidence)})

    def _mark(self, step: Step, **changes: Any) -> None:
        self.states[step.step] = replace(self.states[step.step], **changes)


def _proof(injection: Injection) -> Evidence:
    try:
        return injection.proven()
    except Exception as error:  # a witness should not raise; the step stays in effect and must be healed
        return Evidence(False, now_ns(), f"could not be proven: {_error_text(error)}")


def _error_text(error: Exception) -> str:
    """The error as a sentence, with its type if it is not a ``FencepostError``."""
    if isinstance(error, FencepostError):
        return str(error)
    _LOG.warning("a fault failed", exc_info=error)
    return f"{type(error).__name__}: {error}"


def _describe(step: Step) -> dict[str, Any]:
    return {
        "step": step.step,
        "fault": serialization.name_of(step.fault),
        "impact": sorted(step.fault.impact) if isinstance(step.fault, HasImpact) else [],
        "expect": step.expect,
        "required": step.required,
    }
