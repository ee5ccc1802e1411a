"""What changes no meaning changes no verdict: the same history, told in another order, in other files, with other
numbers and names, has the same anomalies; and what is added to it shows as exactly that.

Each history is judged by the oracle and by the kernel, see ``test_kernel_equals_oracle``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import JudgedCounts
from fencepost.checkers.judge import judge
from fencepost.checkers.spark import detector
from fencepost.checkers.spark.engine import OnContext
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import load
from fencepost.evidence.sealing.seal import seal
from fencepost.model import Anomaly, Verdict
from history import random_histories, retelling
from history.builder import HistoryBuilder
from history.retelling import FAR, LATER_NS, retold
from history.shrinking import SHRINKING_S, Tell, check_each, fresh
from history.test_kernel_equals_oracle import KINDS, STRICT, agreed

SEED = pytest.mark.parametrize("seed", [23, pytest.param(44, marks=pytest.mark.slow)])
NIGHTLY = 50
WHOLE_GROUP = "off-by-one"  # is what all commits have in common, so that one correct member refutes it
pytestmark = pytest.mark.timeout(SHRINKING_S)
renamed = retelling.Renamed()


def _moved(anomaly: Anomaly, offsets: int = 0, times_ns: int = 0) -> Anomaly:
    first, last = (n + offsets if n >= 0 else n for n in (anomaly.first_offset, anomaly.last_offset))
    begin, end = (ns + times_ns if ns else 0 for ns in (anomaly.from_ns, anomaly.to_ns))
    return replace(anomaly, first_offset=first, last_offset=last, from_ns=begin, to_ns=end)


def _named(anomaly: Anomaly) -> Anomaly:
    partition = anomaly.partition + renamed.partition if anomaly.partition >= 0 else -1
    members = tuple(renamed.text(name) for name in anomaly.members)
    return replace(anomaly, topic=renamed.text(anomaly.topic), partition=partition, members=members)


def _later(facts: JudgedCounts) -> JudgedCounts:
    return replace(facts, **{n: ns + LATER_NS for n in ("first_ns", "last_ns") if (ns := getattr(facts, n))})


CHANGES = {
    "shuffled": (retelling.shuffled(1), lambda a: a, lambda f: f),
    "scattered": (retelling.scattered, lambda a: a, lambda f: f),
    "farther": (retelling.farther, lambda a: _moved(a, offsets=FAR), lambda f: f),
    "later": (retelling.later, lambda a: _moved(a, times_ns=LATER_NS), _later),
    "renamed": (renamed, _named, lambda f: f),
}
HOW = pytest.mark.parametrize("how", CHANGES)


def told_in_another_way(run: Path, how: str) -> None:
    change, anomaly, facts = CHANGES[how]
    with tempfile.TemporaryDirectory(dir=run.parent) as folder:
        other = retold(run, Path(folder) / "other", change)
        (expected, counted), (found, counts) = agreed(run, STRICT), agreed(other, STRICT)
        assert found == sorted(map(anomaly, expected))
        assert counts == facts(counted)
        assert gist(judge(other, oracle.detect)) == gist(judge(run, oracle.detect))


def gist(verdict: Verdict) -> object:
    """What a verdict says, without names, places and times."""
    return [
        (c.check, c.validity, c.facts_judged, [(f.kind, f.severity, f.count) for f in c.findings])
        for c in verdict.checks
    ]


@SEED
@HOW
@KINDS
def test_told_in_another_way(tmp_path: Path, tell: Tell, how: str, seed: int) -> None:
    check_each(tell, tmp_path, [seed], partial(told_in_another_way, how=how))


@pytest.mark.slow
@HOW
@KINDS
def test_fresh_histories_told_in_another_way(
    request: pytest.FixtureRequest, tmp_path: Path, tell: Tell, how: str
) -> None:
    check_each(tell, tmp_path, fresh(request, 0, NIGHTLY), partial(told_in_another_way, how=how))


@KINDS
@SEED
@pytest.mark.parametrize("width", [1, 2, 7, 50])
def test_cut_into_tasks_of_any_width(tmp_path: Path, tell: Tell, width: int, seed: int) -> None:
    tables = load(run := tell(tmp_path, seed))
    assert detector.find_here(run, tables, STRICT, width) == detector.find_here(run, tables, STRICT)


@pytest.mark.spark
@pytest.mark.slow
@SEED
@pytest.mark.parametrize("bundles", [1, 5])
def test_any_parallelism_of_spark(
    tmp_path: Path, chaos_spark: Spark, monkeypatch: pytest.MonkeyPatch, bundles: int, seed: int
) -> None:
    monkeypatch.setattr(detector, "BUNDLES_EACH", bundles)
    monkeypatch.setattr(OnContext, "cores", 1)
    run = random_histories.wild(tmp_path, seed)
    assert detector.find(run, load(run), STRICT, chaos_spark, width=20) == agreed(run, STRICT)


@SEED
@pytest.mark.parametrize("capacity", [1, 4, 1_000])
def test_segments_of_any_length_are_sealed_to_the_same_history(tmp_path: Path, capacity: int, seed: int) -> None:
    run = retold(random_histories.wild(tmp_path, seed), tmp_path / "run", retelling.as_recorded)
    other = retold(run, tmp_path / "other", retelling.unsealed)
    retelling.record(run, other, capacity)
    assert not seal(other).damage
    assert agreed(other, STRICT) == agreed(run, STRICT)


@SEED
@pytest.mark.parametrize("tell", [random_histories.tame, random_histories.wild], ids=["tame", "wild"])
def test_one_more_correct_member_adds_nothing(tmp_path: Path, tell: Callable[..., Path], seed: int) -> None:
    alone, along = tell(tmp_path, seed), tell(tmp_path, seed, guest=True)
    (found, facts), (expected, counted) = agreed(along, STRICT), agreed(alone, STRICT)
    assert found == [anomaly for anomaly in expected if anomaly.kind != WHOLE_GROUP]
    assert facts.finished == counted.finished + 5
    assert found != expected or states(judge(along, oracle.detect)) == states(judge(alone, oracle.detect))


def states(verdict: Verdict) -> object:
    return [(check.check, check.validity) for check in verdict.checks]


def test_a_black_boxs_commit_at_the_start_of_the_log_is_no_progress_wherever_that_is(tmp_path: Path) -> None:
    h = HistoryBuilder(
        tmp_path, 2, keys=2, black_box=True, promises=[{"type": "progress"}], workload={"type": "own_program"}
    )
    h.write(1, 1, at=0.8)
    member = h.member(0, instance_id="one", at=1.0)
    member.commit(0, 6.2, 1)
    told_in_another_way(h.seal(), "farther")
