"""The phases of a run: records each as an event, shows the progress, and waits within a phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import ClusterError, FencepostError, WaitTimeout
from fencepost.group.running_group import RunningGroup
from fencepost.history import EventKind
from fencepost.model import Outcome, serialization
from fencepost.runner.injector import StepState
from fencepost_member.recording.events import EventLog


@dataclass(frozen=True)
class RunProgress:
    """The run at one moment, for a display. Counts are records.

    ``members`` has (name, alive, number of owned partitions; -1: the member does not report it). ``faults`` has (step,
    fault, target, state, evidence). ``note`` is a sentence, for example what a long wait is for.
    """

    phase: str
    elapsed_s: float
    produced: int = 0
    delivered: int = 0
    processed: int = 0
    lag: int = 0
    members: tuple[tuple[str, bool, int], ...] = ()
    faults: tuple[tuple[int, str, str, str, str], ...] = ()
    note: str = ""


Observer = Callable[[RunProgress], None]


class Phases:
    """The current phase of a run.

    Attributes:
        group: the group under test; None before it is made.
        states: the stage of each step of the plan; empty before there is an injector.
    """

    def __init__(self, events: EventLog, observe: Observer) -> None:
        """The run begins now; ``observe`` is called whenever something may have changed."""
        self.group: RunningGroup | None = None
        self.states: Sequence[StepState] = ()
        self._events, self._observe = events, observe
        self._began_ns, self._name = now_ns(), ""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """One phase as an event. A phase that fails has no end (``end_ns`` 0); its detail has the ``reason``."""
        self._name = name
        self._look()
        event = self._events.begin(EventKind.PHASE, detail={"name": name})
        try:
            yield
        except BaseException as error:
            detail = {"name": name, "reason": str(error) or type(error).__name__}
            self._events.end(event, end_ns=0, outcome=Outcome.FAIL, detail=detail)
            raise
        self._events.end(event)

    @contextmanager
    def report_errors(self) -> Iterator[None]:
        """Show a ``FencepostError`` and continue after the block: the event of the failed phase records it."""
        try:
            yield
        except FencepostError as error:
            self.show(f"the phase {self._name} failed: {error}")

    def wait(
        self,
        probe: Callable[[], bool],
        within_s: float,
        describe: str,
        state: Callable[[], str] = lambda: "",
        hint: str = "",
    ) -> None:
        """``eventually``, which also shows the progress. A failed call to the cluster means "not yet"."""

        def watched() -> bool:
            self._look()
            return probe()

        forgive = (WaitTimeout, ClusterError)
        eventually(watched, within_s, describe, state=state, hint=hint, every_s=0.1, forgive=forgive)

    def wait_or_give_up(self, probe: Callable[[], bool], within_s: float, describe: str) -> bool:
        """Like ``wait``, but return whether the condition became true in time.

        Raises:
            WaitTimeout: that is unknown, because the last call of ``probe`` failed.
        """
        try:
            self.wait(probe, within_s, describe)
        except WaitTimeout as late:
            if late.__cause__ is not None:
                raise
            return False
        return True

    def show(self, note: str) -> None:
        """Show a sentence."""
        self._observe(self._progress(note))

    def _look(self) -> None:
        if self.group is not None:
            self.group.supervise()
            self.group.refresh()
        self._observe(self._progress(""))

    def _progress(self, note: str) -> RunProgress:
        elapsed_s = (now_ns() - self._began_ns) / NS
        if self.group is None:
            return RunProgress(self._name, elapsed_s, note=note)
        records, silent = self.group.progress(), self.group.outside is not None
        return RunProgress(
            self._name,
            elapsed_s,
            records.acknowledged,
            records.delivered,
            records.processed,
            max(0, records.acknowledged - records.processed),
            tuple((m.name, m.pid is not None, -1 if silent else len(m.owned)) for m in self.group.members if m.life),
            tuple(
                (s.step.step, serialization.name_of(s.step.fault), s.target, s.state, s.evidence) for s in self.states
            ),
            note,
        )
