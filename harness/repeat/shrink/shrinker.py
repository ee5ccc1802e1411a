"""Shrinks a run that broke a promise: smaller cases are performed until none of them breaks it in the same way.

Real clusters are noisy: a smaller case is kept when enough of its runs fail. All run folders stay, and ``shrunk.json``
in the same folder lists what was tried.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.clock import NS, now_ns
from fencepost.console.terminal import out, show_plan
from fencepost.errors import RunFolderError
from fencepost.history.run_folder import RunFolder
from fencepost.model import Severity, Validity, Verdict
from fencepost.repeat import replay
from fencepost.repeat.batch import RunOptions, perform, rate
from fencepost.repeat.shrink.passes import Case, search
from fencepost.reports import verdict_summary
from fencepost.reports.formatting import shown

AS_IT_IS = "as it is"


@dataclass(frozen=True)
class Budget:
    """The budget.

    Attributes:
        failures, of: a case fails when ``failures`` of at most ``of`` runs do.
        minutes: the time after which no further case is tried; the current case is finished.
        rate_runs: how many runs of the smallest case measure how often it fails.
    """

    failures: int = 2
    of: int = 3
    minutes: float = 30
    rate_runs: int = 5


@dataclass(frozen=True)
class Attempt:
    """One run: its folder, whether it failed as the original run did, and (``outcome``) its finding or verdict."""

    folder: Path
    failed: bool
    outcome: str = ""


@dataclass(frozen=True)
class Shrunk:
    """The result.

    Attributes:
        kind: the kind of finding that must reproduce.
        case: the smallest case that fails; None: the original case did not fail again.
        folder: a run of it that failed.
        complete: all smaller cases were tried; else the time was over first.
        rate: how often it failed, in words; empty: not measured.
    """

    kind: str
    tries: tuple[dict[str, Any], ...] = ()
    case: Case | None = None
    folder: Path | None = None
    complete: bool = False
    rate: str = ""


def failure(run: Path) -> tuple[Case, str]:
    """The case of a failed run, and the kind of its worst finding.

    Raises:
        RunFolderError: it was not judged, or no promise was broken.
    """
    case = Case.of(*replay.load(run))
    worst = verdict_summary.worst(Verdict.from_json(RunFolder.open(run).read_json("verdict.json")))
    if worst is None:
        raise RunFolderError(f"{run} broke no promise, so there is nothing to shrink")
    return case, worst.finding.kind


def shrink(run: Path, where: RunOptions, effort: Budget) -> Shrunk:
    """The smallest case that still fails as ``run`` did; its runs are stored in a new folder under ``where``.

    Raises:
        RunFolderError: ``run`` did not fail, or its finding is unknown.
        ScenarioError, ProvisionError: it cannot be performed here; see ``preflight.check``.
    """
    case, kind = failure(run)
    where.ready([(case.scenario, case.plan)])
    where = replace(where, runs=where.runs / f"{run.resolve().name}-shrunk-{time.strftime('%Y%m%d-%H%M%S')}")
    with where.judge() as spark:

        def attempt(case: Case) -> Attempt:
            folder, verdict = perform(case.scenario, case.plan, where.once(), spark)
            return _result(folder, verdict, kind)

        def keep(shrunk: Shrunk) -> None:
            RunFolder(where.runs).write_json("shrunk.json", _json(run, shrunk))

        return Shrinking(kind, attempt, effort, keep).run(case)


class Shrinking:
    """Tries cases with ``attempt``; passes the current result to ``keep`` after each, so that an interrupted search
    still has a result."""

    def __init__(
        self, kind: str, attempt: Callable[[Case], Attempt], effort: Budget, keep: Callable[[Shrunk], None]
    ) -> None:
        """The time starts now."""
        self._attempt, self._effort, self._keep = attempt, effort, keep
        self._so_far = Shrunk(kind)
        self._began_ns = now_ns()

    def run(self, case: Case) -> Shrunk:
        """The smallest case below ``case``, as far as time allows."""
        if not self._fails(AS_IT_IS, case):
            return self._so_far
        proposals = search(case)
        try:
            proposal = next(proposals)
            while now_ns() - self._began_ns < self._effort.minutes * 60 * NS:
                proposal = proposals.send(self._fails(proposal.what, proposal.case))
        except StopIteration:
            self._update(complete=True)
        else:
            out.print(f"{self._effort.minutes:g} minutes are over; a smaller case may be left", style="yellow")
        self._rate()
        return self._so_far

    def _rate(self) -> None:
        """Measure how often the smallest case fails, by new runs: the old ones were selected for failing."""
        case = self._so_far.case
        if case is None or not self._effort.rate_runs:
            return
        attempts = [self._once(f"the smallest, run {n + 1}", case) for n in range(self._effort.rate_runs)]
        failed = [attempt.folder for attempt in attempts if attempt.failed]
        self._update(rate=rate(len(failed), len(attempts)), folder=[self._so_far.folder, *failed][-1])

    def _fails(self, what: str, case: Case) -> bool:
        """Whether enough runs of ``case`` fail; stops as soon as that is known."""
        attempts: list[Attempt] = []
        failures, of = self._effort.failures, self._effort.of
        while (failed := sum(a.failed for a in attempts)) < failures and len(attempts) - failed <= of - failures:
            attempts.append(self._once(f"{what}: run {len(attempts) + 1} of {of} at most", case))
        fails = failed >= failures
        tried = {"what": what, "case": str(case), "fails": fails, "runs": {a.folder.name: a.outcome for a in attempts}}
        self._update(tries=(*self._so_far.tries, tried))
        if fails:
            self._update(case=case, folder=[a.folder for a in attempts if a.failed][-1])
        others = sorted({a.outcome for a in attempts} - {str(Validity.VALID), self._so_far.kind})
        result = f"fails in {failed} of {len(attempts)}" + (f", kept: {case}" if fails else "")
        out.print(f"{what}: {result}" + (f" (but {', '.join(others)})" if others else ""), markup=False)
        return fails

    def _once(self, what: str, case: Case) -> Attempt:
        with out.status(what):
            return self._attempt(case)

    def _update(self, **more: Any) -> None:
        self._so_far = replace(self._so_far, **more)
        self._keep(self._so_far)


def _result(folder: Path, verdict: Verdict | None, kind: str) -> Attempt:
    kinds = [finding.kind for _, finding in verdict_summary.findings(verdict, Severity.VIOLATION)]
    if kind in kinds:
        return Attempt(folder, True, kind)
    return Attempt(folder, False, kinds[0] if kinds else str(verdict.validity if verdict else "not judged"))


def _json(run: Path, shrunk: Shrunk) -> dict[str, Any]:
    return {
        "of": run.resolve().name,
        "kind": shrunk.kind,
        "smallest": None if shrunk.case is None else str(shrunk.case),
        "run": None if shrunk.folder is None else shrunk.folder.name,
        "complete": shrunk.complete,
        "rate": shrunk.rate,
        "tries": shrunk.tries,
    }


def show_shrunk(shrunk: Shrunk) -> bool:
    """Print the smallest case and how to repeat it; returns whether there is one."""
    if shrunk.case is None or shrunk.folder is None:
        out.print(
            f"{shrunk.kind} did not reproduce, so there is nothing to shrink; `fencepost replay --repeat 10` measures "
            "how often it fails"
        )
        return False
    out.print(f"\nthe smallest case that breaks a promise by {shrunk.kind}: {shrunk.case}", style="bold", markup=False)
    show_plan(shrunk.case.plan, shrunk.case.scenario.inventory())
    out.print((f"fails in {shrunk.rate}; " if shrunk.rate else "") + f"{len(shrunk.tries)} cases tried")
    out.print(f"repeat it: fencepost replay {shlex.quote(shown(shrunk.folder))}", markup=False)
    return True
