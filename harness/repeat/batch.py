"""Batches of runs: each run is performed and judged, and the results are summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

from fencepost.clusters.backends import Backend
from fencepost.console.terminal import out, show_plan, show_verdict
from fencepost.model import Validity, Verdict
from fencepost.reports.formatting import shown
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan

if TYPE_CHECKING:
    from fencepost.checkers.spark.session import Spark
    from fencepost.runner.phases import Observer

CONFIDENCE = 0.95


@dataclass(frozen=True)
class RunOptions:
    """Where runs are performed and judged.

    Attributes:
        runs: the parent of their run folders.
        cluster: the back-end.
        spark_master, spark_remote: the Spark that judges.
        check: whether runs are judged at all.
    """

    runs: Path
    cluster: Backend
    spark_master: str
    spark_remote: str | None = None
    check: bool = True

    def ready(self, cases: Iterable[tuple[Scenario, Plan]]) -> None:
        """Refuse what cannot be performed here, before anything starts. Raises: see ``preflight.check``."""
        from fencepost.runner import preflight

        preflight.check(cases, self.cluster, self.runs, lambda note: out.print(note, markup=False))

    def once(self) -> RunOptions:
        """The same for one run, with new names in an attached cluster."""
        return replace(self, cluster=self.cluster.for_another_run())

    def judge(self) -> AbstractContextManager[Spark | None]:
        """Start the judge's Spark: its start overlaps with the first cluster's, and it is idle during chaos."""
        from fencepost.checkers.spark.session import Spark

        return Spark.start(self.spark_master, remote=self.spark_remote) if self.check else nullcontext()


def perform(
    scenario: Scenario, plan: Plan, where: RunOptions, spark: Spark | None, observe: Observer | None = None
) -> tuple[Path, Verdict | None]:
    """Perform one run; returns its folder, and its verdict if there is a Spark."""
    from fencepost import runner
    from fencepost.judging import judge

    folder = runner.run(scenario, plan=plan, runs=where.runs, observe=observe, backend=where.cluster)
    return folder, None if spark is None else judge(folder, spark)


def _show(scenario: Scenario, plan: Plan, where: RunOptions, spark: Spark | None) -> Verdict | None:
    """Perform one run and show everything from its plan to its verdict."""
    from fencepost.console import progress_display

    where = where.once()
    _announce(scenario, plan, where)
    with progress_display.view(out) as watcher:
        folder, verdict = perform(scenario, plan, where, spark, watcher)
    if verdict is None:
        out.print(f"history: {shown(folder)}", markup=False)
    else:
        show_verdict(verdict, folder)
    return verdict


def _announce(scenario: Scenario, plan: Plan, where: RunOptions) -> None:
    out.print(f"{scenario.name}, seed {plan.seed}", style="bold", markup=False)
    if scenario.about:
        out.print(scenario.about, markup=False)
    show_plan(plan, scenario.inventory())
    if intent := where.cluster.intent(scenario, plan):
        out.print("\n  ".join([f"on {where.cluster} this run will", *intent]), markup=False)


def dry_run(cases: Iterable[tuple[Scenario, Plan]], where: RunOptions) -> None:
    """Show what the runs would do, and check in a cluster of another owner that they can be performed. This creates
    nothing.

    Raises:
        FencepostError: a run cannot be performed; see ``Backend.examine``.
    """
    for scenario, plan in cases:
        one = where.once()
        _announce(scenario, plan, one)
        found = one.cluster.examine(scenario, plan, lambda note: out.print(note, markup=False))
        for sentence in found:
            out.print(f"checked: {sentence}", markup=False)
    out.print("dry run: nothing was created and no fault was injected")


def run_batch(cases: Iterable[tuple[Scenario, Plan]], where: RunOptions) -> Validity | None:
    """Perform all ``cases``, one after the other; returns the worst of their verdicts, or None without a judge.

    Call ``where.ready`` with the cases first, so that errors are reported before Spark starts.
    """
    with where.judge() as spark:
        verdicts = [_show(scenario, plan, where, spark) for scenario, plan in cases]
    judged = [verdict.validity for verdict in verdicts if verdict is not None]
    if len(judged) > 1:
        out.print(tally(judged))
    return Validity.worst(judged) if judged else None


def tally(judged: Sequence[Validity]) -> str:
    """How many runs had which verdict, and how often promises were broken among the known ones."""
    counts = Counter(judged)
    text = f"{len(judged)} runs: " + ", ".join(f"{counts[validity]} {validity}" for validity in Validity)
    known = counts[Validity.VALID] + counts[Validity.INVALID]
    return f"{text}; promises were broken in {rate(counts[Validity.INVALID], known)}" if known else text


def rate(failed: int, of: int) -> str:
    """``3 of 10 (30 %; with 95 % confidence 11 to 60 %)``: the interval is Wilson's score interval (JASA 22, 1927)."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (failed + z**2 / 2) / (of + z**2)
    half = z / (of + z**2) * sqrt(failed * (of - failed) / of + z**2 / 4)
    share, low, high = (f"{100 * part:.0f}" for part in (failed / of, max(0.0, middle - half), middle + half))
    return f"{failed} of {of} ({share} %; with {100 * CONFIDENCE:.0f} % confidence {low} to {high} %)"
