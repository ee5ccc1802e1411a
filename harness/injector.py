"""Performs a plan: fires each step at its time, proves it, heals it, and undoes everything on the way out.

The injector never waits for a step's time to come: the runner asks it, ever again, to do what is due. Nothing that a
step meets ends the run: what could not be done or proven is in its event.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fencepost import codec
from fencepost.clock import NS, now_ns
from fencepost.errors import FencepostError
from fencepost.history import EventKind
from fencepost.interfaces import Evidence, Injection, Target, World
from fencepost.model import Outcome
from fencepost.schedule import Plan, Step
from fencepost_member.events import EventLog

_LOG = logging.getLogger(__name__)
TARGET_WINDOW_S = 5.0  # how long a step asks again for a target before it is not applicable


@dataclass(frozen=True)
class StepState:
    """Where one step is: ``pending``, ``in-effect``, ``unproven``, ``healed``, ``done`` or ``not-applicable``."""

    step: Step
    state: str = "pending"
    target: str = ""
    evidence: str = ""


@dataclass
class _InEffect:
    step: Step
    target: Target
    injection: Injection
    detail: dict[str, Any] = field(default_factory=dict)


class Injector:
    """Runs the steps of ``plan`` against ``world`` and writes what happened to ``events``.

    Args:
        disturbed: the members that a fault has in its hands now; kept up to date here, read by the world's view.
    """

    def __init__(self, plan: Plan, world: World, events: EventLog, disturbed: set[int]) -> None:
        """Nothing happens before ``begin``."""
        self._world, self._events, self._disturbed = world, events, disturbed
        self.states = [StepState(step) for step in plan.steps]
        self._began_ns = 0
        self._in_effect: list[_InEffect] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        for step in plan.steps:
            self._at(step.at_s, lambda step=step: self._fire(step))  # type: ignore[misc]

    def begin(self) -> None:
        """The group is warm: times of the plan count from now."""
        self._began_ns = now_ns()

    @property
    def elapsed_s(self) -> float:
        """Seconds since ``begin``."""
        return (now_ns() - self._began_ns) / NS

    @property
    def finished(self) -> bool:
        """All steps have fired (or found no target) and all that heals is healed."""
        return not self._agenda

    def do_what_is_due(self) -> None:
        """Fire and heal everything whose time has come, one after the other, in the order of their times.

        Each looks at the cluster, injects (or undoes) and waits for the proof; what falls due meanwhile comes late.
        """
        while self._agenda and self._agenda[0][0] <= self.elapsed_s:
            _, _, action = heapq.heappop(self._agenda)
            action()

    def undo_all(self) -> None:
        """Undo what is still in effect, the last first; steps that have not fired never will."""
        self._agenda.clear()
        while self._in_effect:
            self._heal(self._in_effect[-1])

    @contextmanager
    def undone_on_exit(self) -> Iterator[None]:
        """Undo everything however the block ends."""
        try:
            yield
        finally:
            self.undo_all()

    def _at(self, at_s: float, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._agenda, (at_s, self._order, action))

    def _fire(self, step: Step, until_s: float | None = None) -> None:
        """Inject and prove one step; while it has no target it is tried again until ``until_s``, then skipped."""
        try:
            view = self._world.view()
        except FencepostError as error:
            self._again_or_never(step, until_s, f"the cluster could not be looked at: {error}")
            return
        target = Target() if step.target is None else step.target.resolve(view, step.pick)
        if target is None:
            self._again_or_never(step, until_s, f"nothing matched {step.target} for {TARGET_WINDOW_S:g} s")
            return
        hit = "" if step.target is None else str(target)  # a fault that chooses by itself tells it in its evidence
        incarnations = [m.incarnation for m in view.members if m.index in target.members]
        detail = {
            **_describe(step),
            "target": hit,
            "members": incarnations,
            "brokers": list(target.brokers),
        }
        event = self._events.begin(EventKind.FAULT, detail=detail)
        try:
            injection = step.fault.inject(self._world, target)
        except Exception as error:  # a defect of one fault is that step's, and the others go on
            evidence = Evidence(False, now_ns(), f"could not be injected: {_told(error)}")
        else:
            self._in_effect.append(_InEffect(step, target, injection, detail))
            self._disturbed.update(target.members)
            evidence = _proof(injection)
        self._record(event, detail, evidence)
        self._mark(
            step,
            state="in-effect" if evidence.took_effect else "unproven",
            target=hit,
            evidence=evidence.what,
        )
        if self._in_effect and self._in_effect[-1].step is step:
            if step.heal_after_s is None:
                self._in_effect.pop()
                self._disturbed.difference_update(target.members)
                self._mark(step, state="done" if evidence.took_effect else "unproven")
            else:
                entry = self._in_effect[-1]
                self._at(self.elapsed_s + step.heal_after_s, lambda: self._heal(entry))

    def _again_or_never(self, step: Step, until_s: float | None, reason: str) -> None:
        """``until_s`` is None at the first try: the window begins when there was time to look, however late."""
        now_s = self.elapsed_s
        if until_s is None or now_s < until_s:
            until = now_s + TARGET_WINDOW_S if until_s is None else until_s
            self._at(now_s + 0.1, lambda: self._fire(step, until))
            return
        self._mark(step, state="not-applicable", evidence=reason)
        self._events.note(EventKind.SKIPPED, detail={**_describe(step), "reason": reason})

    def _heal(self, entry: _InEffect) -> None:
        """Undo one fault; a failure is recorded and never keeps the others from being undone."""
        self._in_effect.remove(entry)
        event = self._events.begin(EventKind.HEALED, detail=entry.detail)
        try:
            entry.injection.undo()
            evidence = entry.injection.healed()
        except Exception as error:  # a defect of one fault must not keep the others from being undone
            evidence = Evidence(False, now_ns(), f"could not be undone: {_told(error)}")
            _LOG.warning("step %d %s", entry.step.step, evidence.what)
        still_hit = {m for other in self._in_effect for m in other.target.members}
        self._disturbed.difference_update(set(entry.target.members) - still_hit)
        self._record(event, entry.detail, evidence)
        before = self.states[entry.step.step]
        ended = "healed" if evidence.took_effect else "not-healed"
        self._mark(entry.step, state=ended if before.state == "in-effect" else before.state, evidence=evidence.what)

    def _record(self, event: int, detail: dict[str, Any], evidence: Evidence) -> None:
        outcome = Outcome.OK if evidence.took_effect else Outcome.INFO
        self._events.end(event, outcome=outcome, detail={**detail, "evidence": asdict(evidence)})

    def _mark(self, step: Step, **changes: Any) -> None:
        self.states[step.step] = replace(self.states[step.step], **changes)


def _proof(injection: Injection) -> Evidence:
    try:
        return injection.proven()
    except Exception as error:  # a witness should not raise; the step stays in effect, and must be healed
        return Evidence(False, now_ns(), f"could not be proven: {_told(error)}")


def _told(error: Exception) -> str:
    """What went wrong; the type of an error too that was not made for people."""
    if isinstance(error, FencepostError):
        return str(error)
    _LOG.warning("a fault failed", exc_info=error)
    return f"{type(error).__name__}: {error}"


def _describe(step: Step) -> dict[str, Any]:
    return {
        "step": step.step,
        "fault": codec.snake(type(step.fault).__name__),
        "expect": step.expect,
        "required": step.required,
    }
