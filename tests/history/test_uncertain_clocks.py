"""The log of a group, dated by clocks that are known within some time only, as those of brokers elsewhere: whoever is
not accused by exact times is not accused by these, whatever the errors are.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.evidence.brokers.broker_clocks import MOST_NS
from fencepost.evidence.brokers.clock_conversion import MS
from fencepost.evidence.sealing.seal import seal
from fencepost.model import Verdict
from history.test_not_shown import ATTACHED, PROMISES, hide, violated, with_records

# How wrong the clock of the leader of a term is, as a part of what is told.
ERRORS: dict[str, Callable[[int], int]] = {
    "behind": lambda term: -1,
    "ahead": lambda term: 1,
    "one behind, one ahead": lambda term: 1 if term % 2 else -1,
}


def misdated(run: Path, error_ns: int, sign: Callable[[int], int], told_ns: int = -1) -> None:
    """Date each record as wrong as the clock of its leader may be; ``told_ns``: the error that is told, if another."""
    path = run / "history/coordinator/offsets.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("at_ns"):
            line["at_ns"] += sign(line.get("term") or 0) * error_ns
            line["uncertainty_ns"] = (line.get("uncertainty_ns") or 0) + (error_ns if told_ns < 0 else told_ns)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def judged(run: Path, to: Path, change: Callable[[Path], None] = lambda run: None) -> Verdict:
    """The verdict about a changed copy of an unsealed history of an attached cluster."""
    shutil.copytree(run, to)
    change(to)
    hide(to, ATTACHED)
    seal(to)
    verdict = judge(to, oracle.detect)
    shutil.rmtree(to)
    return verdict


def accused(verdict: Verdict) -> set[tuple[str, str]]:
    return {(check.check, kind) for check in verdict.checks if check.check in PROMISES for kind in violated(check)}


VARIANTS = list(itertools.product((40 * MS, MOST_NS), ERRORS.values()))
# Of correct members whom such an error accuses, if nothing tells of it.
SENSITIVE = (
    "a_commit_before_the_records_were_sent False",
    "a_last_record_that_was_done_after_the_last_commit False",
    "a_generation_begins_while_a_member_still_has_its_partitions named too early classic",
    "assigned_while_the_former_owner_still_commits removed classic",
)


def newly_accused(run: Path, folder: Path, told_ns: int = -1) -> set[tuple[str, str]]:
    """Who is accused by errors, in addition to those whom exact times accuse."""
    found = set()
    for error_ns, sign in VARIANTS:
        change = partial(misdated, error_ns=error_ns, sign=sign, told_ns=told_ns)
        found |= accused(judged(run, folder / "misdated", change))
    return found - accused(judged(run, folder / "exact"))


def test_an_error_that_is_told_accuses_nobody_and_one_that_is_not_told_does(tmp_path: Path) -> None:
    runs = {name: run for name, run in with_records(tmp_path / "runs", ("offsets",)) if name in SENSITIVE}
    assert len(runs) == len(SENSITIVE)
    for run in runs.values():
        assert not newly_accused(run, tmp_path)
        assert newly_accused(run, tmp_path, told_ns=0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_in_no_history_an_error_that_is_told_accuses_anybody(tmp_path: Path) -> None:
    found = ((name, newly_accused(run, tmp_path)) for name, run in with_records(tmp_path / "runs", ("offsets",)))
    assert not [(name, accused) for name, accused in found if accused]
