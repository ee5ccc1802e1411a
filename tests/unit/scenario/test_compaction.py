"""What of compacted topics could not be judged, or not be done, is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.errors import PlanError
from fencepost.faults import DeleteRecords
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.workloads import DeadLetters, OwnProgram, PollLoop

COMPACTED = {"cleanup.policy": "compact"}
BOTH = {"cleanup.policy": "compact, delete"}
SCENARIO = Scenario(
    name="compacted",
    topics=[Topic("orders", partitions=6, config=COMPACTED)],
    group=Group(members=2),
    workload=PollLoop(rate_hz=500),
)
PROGRAM = replace(SCENARIO, group=Group(members=2, command=["python", "program.py"]), workload=OwnProgram())


def refused(scenario: Scenario) -> str:
    try:
        scenario.plan(1)
    except PlanError as error:
        return str(error)
    return ""


def test_a_compacted_topic_is_not_refused() -> None:
    assert not refused(SCENARIO)
    assert not refused(PROGRAM)


@pytest.mark.parametrize("fault", [DeleteRecords(), DeleteRecords(partitions=("orders-3",))])
def test_kafka_deletes_no_records_of_a_topic_that_is_only_compacted(fault: DeleteRecords) -> None:
    asked = replace(SCENARIO, schedule=[at(5, fault)])
    assert "Kafka deletes no records of the topic 'orders', which is only compacted" in refused(asked)
    assert not refused(replace(asked, topics=[replace(SCENARIO.topics[0], config=BOTH)]))


def test_records_of_another_topic_may_be_deleted() -> None:
    topics = [*SCENARIO.topics, Topic("returns", partitions=6)]
    asked = replace(SCENARIO, topics=topics, schedule=[at(5, DeleteRecords(partitions=("returns-3",)))])
    assert not refused(asked)
    assert refused(replace(asked, schedule=[at(5, DeleteRecords())]))


@pytest.mark.parametrize("stays_ms", [1000, 299_999])
@pytest.mark.parametrize("of_brokers", [False, True])
def test_tombstones_of_a_program_must_outlast_the_run(stays_ms: int, of_brokers: bool) -> None:
    """Chaos of 120 s, a drain of 60 s, and 120 s besides. Producers of ours write none."""

    def kept(scenario: Scenario, stays_ms: int) -> Scenario:
        if of_brokers:
            return replace(scenario, broker_config={"log.cleaner.delete.retention.ms": stays_ms})
        config = {**COMPACTED, "delete.retention.ms": stays_ms}
        return replace(scenario, topics=[replace(SCENARIO.topics[0], config=config)])

    assert f"its tombstones are removed after delete.retention.ms = {stays_ms:g}" in refused(kept(PROGRAM, stays_ms))
    assert "Use 300000 or more" in refused(kept(PROGRAM, stays_ms))
    assert not refused(kept(PROGRAM, 300_000))
    assert not refused(kept(SCENARIO, stays_ms))


@pytest.mark.parametrize("name", ["log.roll.ms", "offsets.topic.segment.bytes"])
def test_what_the_group_committed_must_not_be_compacted(name: str) -> None:
    asked = replace(SCENARIO, broker_config={name: 2000})
    assert f"{name} would make them compact not only the topic 'orders'" in refused(asked)
    assert not refused(replace(asked, topics=[Topic("orders", partitions=6)]))


def test_the_cleaner_runs_where_a_topic_is_compacted_and_may_be_turned_off() -> None:
    cleaned = "log.cleaner.enable"
    assert SCENARIO.cluster_spec().broker_config[cleaned] is True
    by_default = replace(SCENARIO, topics=[Topic("orders", 6)], broker_config={"log.cleanup.policy": "compact"})
    assert by_default.cluster_spec().broker_config[cleaned] is True
    assert replace(SCENARIO, broker_config={cleaned: False}).cluster_spec().broker_config[cleaned] is False
    assert cleaned not in replace(SCENARIO, topics=[Topic("orders", 6)]).cluster_spec().broker_config


def test_what_members_write_besides_is_not_compacted() -> None:
    asked = replace(SCENARIO, workload=DeadLetters(), broker_config={"log.cleanup.policy": "compact"})
    assert asked.outputs()
    assert all(topic.config == {"cleanup.policy": "delete"} for topic in asked.outputs())
