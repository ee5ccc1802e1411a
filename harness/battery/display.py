"""Shows a battery while it runs: the table so far on a terminal, lines everywhere else; and the card at its end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fencepost.battery.card import Card, CardRow, Result
from fencepost.battery.situations import Situation
from fencepost.console.progress_display import changes, counts
from fencepost.reports import card_page
from fencepost.reports.formatting import plural
from fencepost.runner.phases import Observer, RunProgress

STYLES = {Result.KEPT: "green", Result.BROKEN: "bold red", Result.NOT_SEEN: "yellow"}
SIGNS = {Result.KEPT: "✓", Result.BROKEN: "✕", Result.NOT_SEEN: "?"}


class BatteryDisplay(AbstractContextManager["BatteryDisplay"]):
    """Satisfies ``Audience``."""

    def __init__(self, console: Console) -> None:
        self._console, self._rows = console, dict[int, CardRow]()
        self._chosen: tuple[Situation, ...] = ()
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> BatteryDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def note(self, sentence: str) -> None:
        """See ``Audience``."""
        self._console.print(sentence, markup=False)

    def planned(self, chosen: Sequence[Situation], estimate_s: float) -> None:
        """See ``Audience``."""
        self._chosen = tuple(chosen)
        self.note(f"{plural(len(chosen), 'situation')}, about {minutes(estimate_s)}; Ctrl-C ends with the card so far")
        if self._live:
            self._live.start()

    def begins(self, number: int, situation: Situation) -> Observer:
        """See ``Audience``."""
        where = f"situation {number + 1} of {len(self._chosen)}: {situation.title}"
        last: RunProgress | None = None
        if not self._live:
            self.note(where)

        def observe(progress: RunProgress) -> None:
            nonlocal last
            if self._live:
                self._live.update(self._picture(where, progress), refresh=True)
            else:
                for line in changes(last, progress):
                    if not line.startswith("phase "):
                        self.note(f"  {line}")
            last = progress

        return observe

    def ended(self, number: int, row: CardRow) -> None:
        """See ``Audience``."""
        self._rows[number] = row
        if not self._live:
            why = "" if row.result is Result.KEPT else f": {row.finding or row.reason}"
            self.note(f"  {SIGNS[row.result]} {row.result}{why}")

    def _picture(self, where: str, progress: RunProgress) -> RenderableType:
        now = Text.assemble((where, "bold"), f"\n  {progress.phase} {progress.elapsed_s:.0f} s, {counts(progress)}")
        faults = [f"  {name} {target} {state}" for _, name, target, state, _ in progress.faults if state != "pending"]
        return Group(table([*self._rows.values()]), now, Text("\n".join(faults), "dim"))


def minutes(seconds: float) -> str:
    """``6 minutes``, or seconds below one minute and a half."""
    return plural(round(seconds), "second") if seconds < 90 else plural(round(seconds / 60), "minute")


def table(rows: Sequence[CardRow]) -> Table:
    """The rows of a card."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(card_page.COLUMNS):
        drawn.add_column(column, justify="left" if number < 2 else "right", overflow="fold")
    for row in rows:
        result = Text(f"{SIGNS[row.result]} {row.result}", STYLES[row.result])
        drawn.add_row(Text(row.title), result, *card_page.cells(row.to_json()))
    return drawn


def shown(card: Card) -> RenderableType:
    """A card for a terminal: the table, the findings with what to change, and what the rule cannot see."""
    parts: list[RenderableType] = [Text(), table(card.rows), Text()]
    for row in card.rows:
        if row.result is Result.KEPT:
            continue
        text = Text(f"{row.title}: ", STYLES[row.result])
        text.append(f"{row.kind}. {row.finding}" if row.kind else row.reason, "default")
        parts.append(text)
        parts += [Text(f"  what to change: {one}", "dim") for one in row.advice]
    notes = [card.load, f"Rule {card.rule}: {card.blind_spots}", *card.notes]
    return Group(*parts, Text(), *(Text(note, "dim") for note in notes))
