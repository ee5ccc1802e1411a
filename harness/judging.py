"""Judges a run folder: makes and stores the verdict first, then draws the reports."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.errors import ProvisionError, ReportError, RunFolderError, WaitTimeout
from fencepost.history.run_folder import RunFolder, listed, strangers
from fencepost.model import Verdict

if TYPE_CHECKING:
    from fencepost.checkers.spark.session import Spark

_LOG = logging.getLogger(__name__)


def judge(run: Path, spark: Spark | None = None, only: Collection[str] = (), processed: str = "") -> Verdict:
    """Judge the history in ``run``, write ``verdict.json``, then ``report.html`` and ``junit.xml``.

    If the run was killed before it was sealed, this seals the history first and judges what was recorded until then.

    Args:
        run: a run folder.
        spark: a handle of a started session; None starts one for this call.
        only: names of checks; empty runs all. A partial verdict is returned, not stored.
        processed: the rule by which a record of a user's program counts as processed, instead of the one of the run;
            such a verdict is returned, not stored.

    Raises:
        RunFolderError: there is no such run folder, or the run is still in progress.
        ScenarioError: the run does not have such a check, or cannot be judged by that rule.
        ProvisionError, WaitTimeout: Spark did not start. Nothing is stored; an earlier verdict stays.
    """
    from fencepost.checkers import judge as checks
    from fencepost.checkers.spark.detector import detector
    from fencepost.checkers.spark.session import Spark

    folder = RunFolder.open(run)
    _seal_what_was_left(folder)
    with nullcontext(spark) if spark else Spark.start() as session:
        try:
            verdict = checks.judge(folder.path, detector(session), only, processed)
        except (ProvisionError, WaitTimeout) as error:
            again = f"Nothing was judged. When Spark works, run: fencepost check {folder.path}"
            raise type(error)(f"{error.args[0].rstrip('.')}. {again}") from error
    if not (only or processed):
        folder.write_verdict(verdict)
        try:
            render(folder.path)
        except ReportError:  # the verdict is stored; a defect of a template must not hide it
            _LOG.exception("the verdict is stored in %s, its report is not", folder.path)
    return verdict


def _seal_what_was_left(folder: RunFolder) -> None:
    """Seal a history that was never sealed, or whose sealing was interrupted. If only ``seal.json`` is missing, the
    history stays as it is: it is damaged, and its state when it was sealed is unknown."""
    from fencepost.evidence.sealing.seal import REPORT, seal

    left = not os.path.lexists(folder.history / "events.parquet") or listed(folder.path, "history/segments/*.seg")
    if os.path.lexists(folder.path / REPORT) or not left or any(strangers(folder.path)):
        return
    if busy := _users(folder.history.resolve()):
        raise RunFolderError(
            f"the run in {folder.path} is still in progress: {busy[0]} writes to it; check it when it has ended"
        )
    seal(folder.path)


def render(run: Path) -> Path:
    """Draw ``junit.xml`` and ``report.html`` from the run folder; return the path of ``report.html``.

    Raises:
        ReportError: one of them could not be drawn. The other one is drawn, if it could be.
    """
    from fencepost.reports import html, junit

    drawn: dict[str, Path | Exception] = {}
    for name, draw in (("junit.xml", junit.render), ("report.html", html.render)):
        try:
            drawn[name] = draw(run)
        except Exception as error:  # a folder may hold anything; the other report is drawn all the same
            drawn[name] = error
    for name, path in drawn.items():
        if isinstance(path, Exception):
            raise ReportError(f"{run / name} could not be drawn: {type(path).__name__}: {path}") from path
    return run / "report.html"


def _users(folder: Path) -> list[str]:
    """Processes that have a file below ``folder`` open, as far as this user may see them: process id and name."""
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if any(Path(file.path).is_relative_to(folder) for file in process.open_files()):
                found.append(f"process {process.pid} ({process.name()})")
    return found
