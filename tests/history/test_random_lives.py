"""The property that matters most: what correct members do under faults never breaks the promises that they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.model import Severity, Validity
from history import fresh
from history.random_histories import tame, wild

LIVES = 80
OFF_BY_ONE = 125  # a seed by which all are, which is rare
BATCHES, BATCH = 10, 100  # of fresh ones, by night


def test_correct_members_under_random_faults_are_valid(tmp_path: Path) -> None:
    permitted = set()
    for seed in range(LIVES):
        permitted |= kept_its_promises(tame(tmp_path, seed))
    assert permitted >= {
        "redelivery",
        "avoidable-redelivery",
        "assignment-overlap",
        "stale-backlog",
        "stale-effect",
    }  # zombies were there


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_fresh_lives_of_correct_members_are_valid(request: pytest.FixtureRequest, tmp_path: Path, batch: int) -> None:
    for run in fresh.histories(request, tmp_path, tame, batch, BATCH):
        kept_its_promises(run)


def kept_its_promises(run: Path) -> set[str]:
    """What was permitted; nothing else was seen."""
    verdict = judge(run, oracle.judge)
    findings = [f for check in verdict.checks for f in check.findings]
    wrong = [(f.kind, f.examples[0]["sentence"]) for f in findings if f.severity != Severity.PERMITTED]
    assert not wrong
    assert verdict.validity == Validity.VALID, [c.reason for c in verdict.checks]
    return {f.kind for f in findings}


@pytest.mark.parametrize("seed", range(0, LIVES, 10))
def test_a_history_is_drawn_from_its_seed_alone(tmp_path: Path, seed: int) -> None:
    runs = [wild(tmp_path / name, seed) for name in ("a", "b")]
    first, second = (judge(run, oracle.judge) for run in runs)
    assert first == second


def test_planted_anomalies_are_found(tmp_path: Path) -> None:
    kinds: set[str] = set()
    for seed in (*range(LIVES), OFF_BY_ONE):
        verdict = judge(wild(tmp_path, seed), oracle.judge)
        kinds |= {f.kind for check in verdict.checks for f in check.findings if f.severity == Severity.VIOLATION}
    assert kinds >= {"commit-ahead", "commit-beyond-end", "commit-regression", "off-by-one", "wrong-start"}
    assert kinds >= {"lost-write", "unseen", "phantom", "redelivery-below-commit", "rewind", "poll-skip", "key-order"}
