"""Shows a run while it runs: a live picture on a terminal, plain lines everywhere else."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fencepost.runner import RunProgress

STATE_STYLES = {  # of every ``injector.Stage``
    "pending": "dim",
    "in-effect": "bold red",
    "unproven": "bold yellow",
    "healed": "green",
    "not-healed": "bold yellow",
    "done": "green",
    "not-applicable": "yellow",
}
COUNTS_EVERY_S = 5.0


class LiveDisplay(AbstractContextManager["LiveDisplay"]):
    """A picture that is redrawn in place; only its last state stays when the run ends."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, progress: RunProgress) -> None:
        """Draw ``progress``."""
        self._live.update(picture(progress), refresh=True)


class LogDisplay(AbstractContextManager["LogDisplay"]):
    """A line for every change of phase and fault, and the counts from time to time: for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: RunProgress | None = None
        self._counted_s = 0.0

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to do."""

    def __call__(self, progress: RunProgress) -> None:
        """Print what changed since the last call."""
        for line in changes(self._last, progress):
            self._print(progress.elapsed_s, line)
        if progress.elapsed_s - self._counted_s >= COUNTS_EVERY_S:
            self._counted_s = progress.elapsed_s
            self._print(progress.elapsed_s, f"{counts(progress)}, {members(progress)}")
        self._last = progress

    def _print(self, elapsed_s: float, line: str) -> None:
        self._console.print(f"{elapsed_s:6.1f} s  {line}", highlight=False, markup=False, soft_wrap=True)


def view(console: Console) -> LiveDisplay | LogDisplay:
    """The view that suits ``console``."""
    return LiveDisplay(console) if console.is_terminal else LogDisplay(console)


def counts(progress: RunProgress) -> str:
    """The records so far, in words."""
    return (
        f"{progress.produced:,} produced, {progress.delivered:,} delivered, {progress.processed:,} processed, "
        f"lag {progress.lag:,}"
    )


def members(progress: RunProgress) -> str:
    """Every member with the number of partitions that it owns."""
    states = (
        (name, ("runs" if owned < 0 else f"owns {owned}") if alive else "is down")
        for name, alive, owned in progress.members
    )
    parts = [f"{name} {how}" for name, how in states]
    return ", ".join(parts) or "no members yet"


def changes(before: RunProgress | None, now: RunProgress) -> list[str]:
    """The changes, a sentence each."""
    lines = []
    if before is None or before.phase != now.phase:
        lines.append(f"phase {now.phase}")
    if now.note and (before is None or before.note != now.note):
        lines.append(now.note)
    known = {fault[0]: fault[3] for fault in before.faults} if before else {}
    for step, name, target, state, evidence in now.faults:
        if state != known.get(step, "pending"):
            aim = f" on {target}" if target else ""
            lines.append(f"step {step}: {name}{aim} {state}" + (f" ({evidence})" if evidence else ""))
    return lines


def picture(progress: RunProgress) -> RenderableType:
    """Phase, counts, members and faults, one under the other."""
    head = Text.assemble((f"{progress.phase:<10}", "bold cyan"), f" {progress.elapsed_s:6.1f} s   ", counts(progress))
    if progress.note:
        head.append(f"   {progress.note}", "dim")
    return Group(head, _members(progress), _faults(progress))


def _members(progress: RunProgress) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for name, alive, owned in progress.members:
        has = "runs" if owned < 0 else f"{owned:2} " + "▮" * owned
        state = Text(has, "green") if alive else Text("down", "bold red")
        table.add_row(f"  {name}", state)
    return table


def _faults(progress: RunProgress) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for step, name, target, state, evidence in progress.faults:
        table.add_row(f"  {step}", name, target, Text(state, STATE_STYLES.get(state, "")), Text(evidence, "dim"))
    return table
