"""A stage for tests of the command line and the plugin: runs without a cluster, verdicts that are told in advance."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fencepost import judging, runner
from fencepost.checkers.spark.session import Spark
from fencepost.cli import commands
from fencepost.clusters.backends import Backend
from fencepost.history.run_folder import RunFolder
from fencepost.model import Check, Finding, Severity, Validity, Verdict
from fencepost.runner import Observer, RunProgress, preflight
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan, plan_to_json

SENTENCE = "member-1.1 never processed orders-3 offset 42, and the group committed 43"


def verdict(validity: Validity, scenario: str = "demo", seed: int = 1) -> Verdict:
    example = {"topic": "orders", "partition": 3, "offset": 42, "members": ["member-1.1"], "sentence": SENTENCE}
    broken = (
        Finding("note-worthy", Severity.NOTE, 999),
        Finding("unseen", Severity.VIOLATION, 1200, "skipped", (example,)),
    )
    reason = {Validity.VALID: "nothing was lost", Validity.INVALID: "1,200 lost", Validity.UNKNOWN: "too few facts"}
    check = Check(
        "delivery",
        'Delivery("at-least-once")',
        validity,
        5000,
        reason[validity],
        broken if validity is Validity.INVALID else (),
    )
    return Verdict(scenario, seed, validity, (check,))


@dataclass
class Stage:
    """Stands in for the runner, the judge and Spark; remembers what it was asked."""

    verdicts: list[Validity | BaseException] = field(default_factory=list)
    progress: Iterable[RunProgress] = ()
    plans: list[Plan] = field(default_factory=list)
    scenarios: list[Scenario] = field(default_factory=list)
    only: Collection[str] = ()
    processed: str = ""
    sparks: list[tuple[str, str | None]] = field(default_factory=list)  # master and remote
    stopped: int = 0
    backends: list[Backend] = field(default_factory=list)

    @property
    def seeds(self) -> list[int]:
        return [plan.seed for plan in self.plans]

    def run(self, scenario: Scenario, *, plan: Plan, runs: Path, observe: Observer | None, backend: Backend) -> Path:
        if self.verdicts and isinstance(self.verdicts[0], BaseException):
            raise self.verdicts.pop(0)
        self.plans.append(plan)
        self.backends.append(backend)
        self.scenarios.append(scenario)
        for moment in self.progress:
            if observe is not None:
                observe(moment)
        return RunFolder.create(runs, scenario.name, plan.seed).path

    def judge(self, run: Path, spark: Spark | None = None, only: Collection[str] = (), processed: str = "") -> Verdict:
        self.only, self.processed = only, processed
        reported = verdict(self.verdicts.pop(0), seed=self.seeds[-1] if self.seeds else 1)
        RunFolder.open(run).write_verdict(reported)
        return reported

    def start(self, master: str = "local[*]", remote: str | None = None) -> Stage:
        self.sparks.append((master, remote))
        return self

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped += 1


class Shell:
    """Calls the entry point as a shell would."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def __call__(self, *args: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            commands.main([str(arg) for arg in args])
        said = self._captured.readouterr()
        return int(left.value.code or 0), said.out, said.err


def run_folder(runs: Path, scenario: Scenario, plan: Plan) -> RunFolder:
    """What a run writes before anything is started."""
    folder = RunFolder.create(runs, scenario.name, plan.seed)
    folder.write_json("scenario.json", {"scenario": scenario.to_json(), "seed": plan.seed})
    folder.write_json("plan.json", plan_to_json(plan))
    return folder


def set_up(monkeypatch: pytest.MonkeyPatch, *verdicts: Validity | BaseException) -> Stage:
    stage = Stage(list(verdicts))
    monkeypatch.setattr(runner, "run", stage.run)
    monkeypatch.setattr(preflight, "try_settings", lambda *_: None)  # it takes seconds
    monkeypatch.setattr(judging, "judge", stage.judge)
    monkeypatch.setattr(Spark, "start", stage.start)
    return stage
