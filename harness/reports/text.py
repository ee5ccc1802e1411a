"""A verdict for terminals: the verdict line, checks, faults, the worst finding, and the path of the report."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fencepost.model import Severity, Validity
from fencepost.reports import folder as folders
from fencepost.reports import verdict_summary
from fencepost.reports.fault_records import FaultRecord
from fencepost.reports.folder import Folder
from fencepost.reports.formatting import moment, number, plural, shown, span
from fencepost.reports.lint import advise
from fencepost.reports.run_timeline import build

STYLES = {Validity.VALID: "green", Validity.UNKNOWN: "yellow", Validity.INVALID: "red"}
_ROWS = 40


def summary(run: Path) -> RenderableType:
    """The summary of the run in folder ``run`` for a terminal. Strings of the run are text, never markup."""
    folder = folders.read(run)
    faults = list(build(folder).faults)
    validity = verdict_summary.validity(folder)
    line = Text(f"{validity.upper()}", style=f"bold {STYLES[validity]}")
    line.append(f"  {folder.name}, seed {folder.seed}", "bold").append(
        f"\n{verdict_summary.why(folder, faults)}", "default"
    )
    parts: list[RenderableType] = [
        line,
        *([Text(about, "dim")] if (about := verdict_summary.about(folder)) else []),
        Text(),
    ]
    if folder.verdict and folder.verdict.checks:
        parts += [_checks(folder), Text()]
    if faults:
        parts += [_faults(folder, faults), Text()]
    worst = verdict_summary.worst(folder.verdict)
    if worst:
        broken = worst.check.promise or worst.check.check
        head = Text(worst.finding.kind, style="bold red")
        head.append(f", {plural(worst.finding.count, 'time')}, against {broken}", "default")
        parts += [head, Text(f"  {worst.sentence}"), Text(f"  repeat it: {folder.command}", "dim"), Text()]
    unjudged = verdict_summary.unjudged(folder.verdict)
    parts += [Text(f"not judged, because {why}: {', '.join(kinds)}", "yellow") for why, kinds in unjudged]
    parts += [Text(f"advice for {', '.join(one.to)}: {one.sentence}", "dim") for one in advise(folder)]
    parts += [Text(f"missing: {sentence}", "yellow") for sentence in folder.missing]
    report = run / "report.html"
    undrawn = f"no report is drawn yet; draw it with: {shlex.join(['fencepost', 'report', folder.place])}"
    parts.append(Text(f"report: {shown(report)}" if report.exists() else undrawn))
    return Group(*parts)


def _table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def _checks(folder: Folder) -> Table:
    numbers = ("facts", "violations", "permitted")
    table = _table("promise", "verdict", *numbers, "reason", numbers=numbers)
    for check in folder.verdict.checks if folder.verdict else ():
        counts = [
            number(sum(f.count for f in check.findings if f.severity is severity))
            for severity in (Severity.VIOLATION, Severity.PERMITTED)
        ]
        state = Text(str(check.validity), STYLES[check.validity])
        cells = [number(check.facts_judged), *counts, check.reason]
        table.add_row(Text(check.promise or check.check), state, *(Text(cell) for cell in cells))
    return table


def _faults(folder: Folder, faults: list[FaultRecord]) -> Table:
    table = _table("fault", "target", "begun", "proven", "evidence", numbers=("begun",))
    for fault in faults[:_ROWS]:
        begun = moment(fault.begin_ns, folder.origin_ns) if fault.begin_ns else "never"
        table.add_row(Text(fault.fault), Text(fault.target or "–"), begun, _proof(fault), Text(fault.evidence))
    if len(faults) > _ROWS:
        table.add_row(Text(f"and {number(len(faults) - _ROWS)} more"))
    return table


def _proof(fault: FaultRecord) -> Text:
    if fault.took_effect:
        return Text(f"after {span(fault.proven_ns - fault.begin_ns)}", "green")
    return Text("not applicable", "dim") if fault.skipped else Text("NOT PROVEN", "yellow")
