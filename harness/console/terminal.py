"""The output of commands: plans and verdicts, on a console that is safe from control characters in a run's strings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fencepost.model import Inventory, Verdict, serialization
from fencepost.reports.formatting import visible
from fencepost.schedule.fault_tolerance import lost_guarantees
from fencepost.schedule.plan import Plan, Step

LOG_COLUMNS = 160  # the width without a terminal


class Terminal(Console):
    """A console on which strings of a run cannot move the cursor, set a title or hide: escape codes become visible."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The output of rich, with foreign control characters made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


out = Terminal(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else LOG_COLUMNS)


def show_plan(plan: Plan, inventory: Inventory) -> None:
    """A line for every step, and for every guarantee that the plan breaks."""
    for step in plan.steps:
        out.print(f"  {in_words(step)}", markup=False)
    for loss in lost_guarantees(plan.steps, inventory):
        out.print(f"  {loss}", markup=False)


def in_words(step: Step) -> str:
    """``at   5.0 s  pause on one_member for 9 s expecting fenced``."""
    parts = [f"at {step.at_s:5.1f} s  {serialization.name_of(step.fault)}"]
    if step.target is not None:
        parts.append(f"on {serialization.name_of(step.target)}")
    if step.when is not None:
        parts.append(f"when {serialization.name_of(step.when)}, within {step.within_s:g} s,")
    if step.heal_after_s is not None:
        parts.append(f"for {step.heal_after_s:g} s")
    if step.expect:
        parts.append(f"expecting {step.expect}")
    return " ".join(parts)


def show_verdict(verdict: Verdict, folder: Path, *, stored: bool = True) -> None:
    """The summary of a judged folder; for a verdict that was not stored, a line for every check."""
    from fencepost.reports import text
    from fencepost.reports.summary import every_check

    if stored:
        out.print(text.summary(folder))
        return
    for line in every_check(verdict):
        out.print(line, markup=False)
