"""The property that matters most: what correct members do under faults never breaks the promises that they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers import group_rules, oracle
from fencepost.checkers.judge import judge
from fencepost.checkers.tables import load
from fencepost.model import Severity, Validity
from history import odd_histories
from history.random_histories import tame, wild
from history.shrinking import SHRINKING_S, check_each, fresh
from history.test_kernel_equals_oracle import STRICT

LIVES = 40
KINDS = 100  # histories, of each sort, that show all kinds of findings
BATCHES, BATCH = 10, 100  # of fresh ones, by night
pytestmark = pytest.mark.timeout(SHRINKING_S)


def test_correct_members_under_random_faults_are_valid(tmp_path: Path) -> None:
    permitted: set[str] = set()
    check_each(tame, tmp_path, range(LIVES), lambda run: permitted.update(kept_its_promises(run)))
    assert permitted >= {
        "redelivery",
        "avoidable-redelivery",
        "assignment-overlap",
        "work-after-reassignment",
        "stale-effect",
    }  # zombies were there


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_fresh_lives_of_correct_members_are_valid(request: pytest.FixtureRequest, tmp_path: Path, batch: int) -> None:
    check_each(tame, tmp_path, fresh(request, batch, BATCH), kept_its_promises)


def kept_its_promises(run: Path) -> set[str]:
    """What was permitted; nothing else was seen."""
    verdict = judge(run, oracle.detect)
    findings = [f for check in verdict.checks for f in check.findings]
    wrong = [(f.kind, f.examples[0]["sentence"]) for f in findings if f.severity != Severity.PERMITTED]
    assert not wrong
    assert verdict.validity == Validity.VALID, [c.reason for c in verdict.checks]
    return {f.kind for f in findings}


@pytest.mark.parametrize("seed", range(0, LIVES, 10))
def test_a_history_is_drawn_from_its_seed_alone(tmp_path: Path, seed: int) -> None:
    runs = [wild(tmp_path / name, seed) for name in ("a", "b")]
    first, second = (judge(run, oracle.detect) for run in runs)
    assert first == second


@pytest.mark.slow
def test_every_kind_of_finding_occurs(tmp_path: Path) -> None:
    """So wherever finders are compared on random histories, none of their rules is left out."""
    kinds = {kind for of_rule in {**oracle.RULES, **group_rules.RULES}.values() for kind in of_rule}
    found: set[str] = set()
    for tell in (wild, odd_histories.tell):
        for seed in range(KINDS):
            run = tell(tmp_path, seed)
            found |= {anomaly.kind for anomaly in oracle.detect(run, load(run), STRICT)[0]}
    assert found == kinds - {"rebalance-on-static-bounce"}, "all of that would have to come together by chance"
