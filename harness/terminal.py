"""What commands print: a console that strings of a run cannot take over, plans and verdicts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fencepost import codec
from fencepost.model import Inventory, Verdict
from fencepost.plan import Plan, Step
from fencepost.reports.words import shown, visible
from fencepost.survival import given_up

if TYPE_CHECKING:
    from fencepost.shrink import Shrunk

LOG_COLUMNS = 160  # where no terminal says how wide it is


class Terminal(Console):
    """A console on which strings of a run cannot move the cursor, set a title or hide: their escapes are shown."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What rich renders, but for what it did not make itself."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


out = Terminal(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else LOG_COLUMNS)


def show_plan(plan: Plan, inventory: Inventory) -> None:
    """A line for every step, and for every guarantee that they give up."""
    for step in plan.steps:
        out.print(f"  {in_words(step)}", markup=False)
    for loss in given_up(plan.steps, inventory):
        out.print(f"  {loss}", markup=False)


def in_words(step: Step) -> str:
    """``at   5.0 s  pause on one_member for 9 s expecting fenced``."""
    parts = [f"at {step.at_s:5.1f} s  {codec.name_of(step.fault)}"]
    if step.target is not None:
        parts.append(f"on {codec.name_of(step.target)}")
    if step.when is not None:
        parts.append(f"when {codec.name_of(step.when)}, within {step.within_s:g} s,")
    if step.heal_after_s is not None:
        parts.append(f"for {step.heal_after_s:g} s")
    if step.expect:
        parts.append(f"expecting {step.expect}")
    return " ".join(parts)


def show_shrunk(shrunk: Shrunk) -> bool:
    """The smallest case and how to repeat it; whether there is one."""
    if shrunk.case is None or shrunk.folder is None:
        out.print(
            f"{shrunk.kind} was not seen again, so nothing can be left out: replay --repeat tells how often it is"
        )
        return False
    out.print(f"\nthe smallest that breaks a promise by {shrunk.kind}: {shrunk.case}", style="bold", markup=False)
    show_plan(shrunk.case.plan, shrunk.case.scenario.inventory())
    out.print((f"fails in {shrunk.rate}; " if shrunk.rate else "") + f"{len(shrunk.tries)} cases tried")
    out.print(f"repeat it: fencepost replay {shlex.quote(shown(shrunk.folder))}", markup=False)
    return True


def show_verdict(verdict: Verdict, folder: Path, *, stored: bool = True) -> None:
    """The summary of a judged folder; of a verdict that was not stored, a line for every check."""
    from fencepost.brief import every_check
    from fencepost.reports import text

    if stored:
        out.print(text.summary(folder))
        return
    for line in every_check(verdict):
        out.print(line, markup=False)
