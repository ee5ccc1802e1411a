"""Attached to brokers of another host, whose clocks are others': times are right within what is told, or not shown."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history.retelling import sealed_again

from cluster.attach.elsewhere import Elsewhere, elsewhere, missing_reason
from cluster.attach.test_attach import SCENARIO, there, violations
from cluster.worlds import LONG_S
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import clock_pair
from fencepost.clusters.admin import OFFSETS_TOPIC
from fencepost.clusters.admin.cleaning import Cleaning, discover
from fencepost.clusters.attach import rights
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.attach.clock_watch import ClockWatch
from fencepost.clusters.cache import quiet
from fencepost.clusters.names import CLOCKS
from fencepost.evidence.brokers import dump_parser, metadata_log, offsets_topic
from fencepost.evidence.brokers.broker_clocks import BrokerClock
from fencepost.evidence.brokers.clock_conversion import MS, Moment, WallClockConverter
from fencepost.faults import Kill
from fencepost.judging import judge
from fencepost.model import Severity, Validity, group_partition
from fencepost.model.findings import FINDINGS
from fencepost.processes.owner import ProcessOwner
from fencepost.schedule.entries import at
from fencepost.targets import member

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

AHEAD_MS = {1: 37_200, 2: -12_500, 3: 900}
OFFSETS = "history/coordinator/offsets.jsonl"
# Half of it would be the error of whoever takes the middle of a round trip.
DELAYS_MS = {1: ("upstream", 60), 2: ("downstream", 40)}


@pytest.fixture(scope="module")
def far() -> Iterator[Elsewhere]:
    """Brokers of another host, with delays on the way to or from two of them."""
    if lacking := missing_reason():
        pytest.skip(lacking)
    with ProcessOwner.open() as owner, elsewhere(owner, AHEAD_MS) as running:
        for broker, (stream, latency_ms) in DELAYS_MS.items():
            running.delay(broker, stream, latency_ms)
        yield running


@pytest.fixture
def cluster(far: Elsewhere) -> Iterator[Elsewhere]:
    """The same, with its clocks as they were, and nothing left in it after the test."""
    before = there(far.cluster)
    yield far
    for broker, ahead_ms in AHEAD_MS.items():
        far.clocks[broker].set(ahead_ms)
    assert there(far.cluster) == before


def attachment(cluster: Elsewhere) -> Attachment:
    """Permitted, as its brokers are on another host."""
    return Attachment.of(cluster.address, permitted=True)


def test_the_clocks_are_read_also_where_the_log_of_the_group_is_hidden(
    cluster: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "check", lambda *_: "this user may not read it")
    asked = attachment(cluster)
    with ProcessOwner.open() as owner:
        attached = asked.start(SCENARIO, SCENARIO.plan(1), owner, quiet)
        try:
            found = attached.evidence.clocks()
        finally:
            attached.stop()
    assert found is not None, "what brokers stamped would be dated by our clock"
    assert all(found.brokers.values())


def test_the_clock_of_each_broker_is_inside_of_its_bounds(cluster: Elsewhere) -> None:
    asked = attachment(cluster)
    brokers = discover(asked.address, asked.access).brokers
    watch = ClockWatch(brokers, asked.access, f"{asked.prefix}{CLOCKS}", 0)
    try:
        watch.begin(quiet)
        found, pair = watch.readings(), clock_pair()
    finally:
        watch.close()
        cleaning = Cleaning(brokers, asked.access, asked.prefix)
        assert cleaning.remove_all(LONG_S) == []
        cleaning.close()
    for broker, ahead_ms in AHEAD_MS.items():
        clock = BrokerClock.of(found.brokers[broker])
        bounds, ours_ns = clock.ahead(pair[0]), pair[1] - pair[0]
        assert bounds.low_ns <= ahead_ms * MS + ours_ns <= bounds.high_ns
        stream, delay_ms = DELAYS_MS.get(broker, ("", 0))
        assert clock.uncertainty_ns >= delay_ms * MS // 2
        if stream:  # so the middle alone would be wrong
            error_ns = (bounds.low_ns + bounds.high_ns) // 2 - ahead_ms * MS - ours_ns
            assert abs(error_ns) > delay_ms * MS // 4


@pytest.mark.core
def test_the_log_of_a_correct_group_is_judged_by_the_clocks_of_its_brokers(
    cluster: Elsewhere, chaos_spark: Spark, tmp_path: Path
) -> None:
    notes: list[str] = []
    run = runner.run(
        SCENARIO,
        plan=SCENARIO.plan(1),
        runs=tmp_path,
        backend=attachment(cluster),
        observe=lambda progress: notes.append(progress.note),
    )
    verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert all(fault["took_effect"] for fault in verdict.faults)
    assert set(verdict.unjudged) == {kind.name for kind in FINDINGS.values() if "requests" in kind.hidden_without}
    facts, leaders = kept(run), leaders_of(run, cluster)
    assert len({leaders[fact["term"]] for fact in facts}) > 1, "brokers with different clocks wrote it"
    for fact, truth_ns in zip(facts, truly(run, cluster), strict=True):
        assert abs(fact["at_ns"] - truth_ns) <= fact["uncertainty_ns"] < 60 * MS
    told = [note for note in notes if "known within" in note]
    assert len(told) == len(AHEAD_MS)
    assert "the clock of broker 2 is 12.5" in told[1]
    assert told[1] in (run / "report.html").read_text()

    wrong = shutil.copytree(run, tmp_path / "as if they had our clock")
    misdated = (fact | as_if_ours(fact, leaders) for fact in facts)
    (wrong / OFFSETS).write_text("".join(json.dumps(fact) + "\n" for fact in misdated))
    accused = judge(sealed_again(wrong), chaos_spark)
    assert accused.validity is Validity.INVALID
    assert violations(accused)


def test_of_a_clock_that_jumps_nothing_is_judged_and_nobody_is_accused(
    cluster: Elsewhere, chaos_spark: Spark, tmp_path: Path
) -> None:
    def jump(progress: runner.RunProgress) -> None:
        if progress.phase == "chaos":
            for broker, clock in cluster.clocks.items():
                clock.set(AHEAD_MS[broker] + 2_000)

    scenario = replace(SCENARIO, schedule=[at(3, Kill(), member(0), heal_after=1)], min_records=1000)
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path, backend=attachment(cluster), observe=jump)
    verdict = judge(run, chaos_spark)
    assert not violations(verdict)
    unclear = [check for check in verdict.checks if check.validity is Validity.UNKNOWN]
    in_doubt = {f.kind for check in unclear for f in check.findings if f.severity is Severity.NOTE}
    assert in_doubt <= {"work-after-fencing"}, "only the log shows that a member whose commit was late had rejoined"
    assert bool(in_doubt) is bool(unclear), [(check.check, check.reason) for check in unclear]
    assert not (run / OFFSETS).exists()
    why = verdict.unjudged["commit-ahead"]
    assert re.fullmatch(
        r"the clock of broker \d jumped during the run: its readings contradict each other by 1\.[89]\d\d s", why
    )


def kept(run: Path) -> list[dict[str, Any]]:
    """The group's log as it was collected."""
    return [json.loads(line) for line in (run / OFFSETS).read_text().splitlines()]


def ours(run: Path) -> WallClockConverter:
    """This machine's clock."""
    return WallClockConverter.of(json.loads((run / "history/clock.json").read_text())["pairs"])


def partition_of(run: Path, cluster: Elsewhere) -> tuple[str, int]:
    """The group, and its partition of the offsets topic."""
    group = json.loads((run / "scenario.json").read_text())["group"]
    return group, group_partition(group, len(cluster.cluster.admin.leaders(OFFSETS_TOPIC)))


def leaders_of(run: Path, cluster: Elsewhere) -> dict[int, int]:
    """Who led the group's partition, by the metadata log, which a stranger cannot read."""
    _, partition = partition_of(run, cluster)
    found = list(dump_parser.read(cluster.cluster.evidence.dump(metadata_log.TOPIC, 0)))
    changes = metadata_log.normalise(found, ours(run), {OFFSETS_TOPIC})
    return {one["leader_epoch"]: one["leader"] for one in changes if one.get("partition") == partition}


def truly(run: Path, cluster: Elsewhere) -> list[int]:
    """When each record of the group's log was written, by the brokers' files and by how far their clocks are ahead."""
    group, partition = partition_of(run, cluster)
    found = dump_parser.read(cluster.cluster.evidence.dump(OFFSETS_TOPIC, partition))
    clock, leaders, last = ours(run), leaders_of(run, cluster), len(kept(run))

    class Truth:
        def moment(self, wall_ms: int, term: int) -> Moment:
            return clock.moment(wall_ms - AHEAD_MS[leaders[term]], term)

    facts = list(offsets_topic.normalise(found, Truth(), group, {}))
    return [fact["at_ns"] for fact in facts[:last]]


def as_if_ours(fact: dict[str, Any], leaders: dict[int, int]) -> dict[str, Any]:
    """The time of a fact if its broker had this machine's clock."""
    return {"at_ns": fact["at_ns"] + AHEAD_MS[leaders[fact["term"]]] * MS, "uncertainty_ns": MS // 2}
