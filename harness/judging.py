"""Judging a run folder: verdict first, stored, and only then the pictures of it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.model import Verdict
from fencepost.store import RunFolder

if TYPE_CHECKING:
    from fencepost.checkers.spark.session import Spark

_LOG = logging.getLogger(__name__)


def judge(run: Path, spark: Spark | None = None, only: Collection[str] = ()) -> Verdict:
    """Judge the history in ``run``, write ``verdict.json``, then ``report.html`` and ``junit.xml``.

    Args:
        run: a run folder.
        spark: a started session handle; None starts one for this call.
        only: names of checks; empty judges all. A partial verdict is returned, not stored.

    Raises:
        RunFolderError: there is no such run folder.
    """
    from fencepost.checkers import judge as checks
    from fencepost.checkers.spark.finder import finder
    from fencepost.checkers.spark.session import Spark

    folder = RunFolder.open(run)
    session = spark or Spark.start()
    try:
        verdict = checks.judge(folder.path, finder(session), only)
    finally:
        if spark is None:
            session.stop()
    if not only:
        folder.write_verdict(verdict)
        render(folder.path)
    return verdict


def render(run: Path) -> Path:
    """Draw ``report.html`` and ``junit.xml`` from what the folder holds; a report that fails to draw loses nothing."""
    from fencepost.reports import html, junit

    for draw in (junit.render, html.render):
        try:
            path = draw(run)
        except Exception:  # the verdict is stored; a defect of a template must not hide it
            _LOG.exception("%s could not draw its report of %s", draw.__module__, run)
            path = run / "report.html"
    return path
