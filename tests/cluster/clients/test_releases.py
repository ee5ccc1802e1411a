"""Releases of every client, with Pythons of their time and each version of Kafka: groups of them are judged."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from fencepost import Group, Scenario, Topic, at, runner
from fencepost.clusters import environments
from fencepost.clusters.kafka import provision, server_properties
from fencepost.errors import ProvisionError, ScenarioError
from fencepost.faults import MoveCoordinator
from fencepost.model import Validity
from fencepost.model.clients import parse
from fencepost.model.settings import KAFKAS
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

# Release -> a Python of its time; none for a program in Java.
PYTHONS = {
    "confluent-kafka==1.6.1": "3.9",
    "confluent-kafka==1.8.2": "3.9",
    "confluent-kafka==1.9.2": "3.10",
    "confluent-kafka==2.0.2": "3.8",
    "confluent-kafka==2.3.0": "3.11",
    "confluent-kafka==2.16.1": "3.13",
    "kafka-python==2.0.2": "3.11",
    "kafka-python==2.2.8": "3.12",
    "kafka-python==3.0.12": "3.13",
    "aiokafka==0.9.0": "3.8",
    "aiokafka==0.10.0": "3.10",
    "aiokafka==0.14.0": "3.13",
    "verifiable-consumer==3.9.1": "",
    "verifiable-consumer==4.3.1": "",
}


@dataclass(frozen=True)
class Pair:
    """A release and a version of Kafka."""

    client: str
    kafka: str

    def __str__(self) -> str:
        return f"{self.client}, Kafka {self.kafka}"

    @property
    def scenario(self) -> Scenario:
        """Two members, whose coordinator moves once."""
        protocol = "cooperative" if "cooperative" in parse(self.client).assignors else "eager"
        times = {"session.timeout.ms": 6000}
        return Scenario(
            name=f"releases, {self}",
            topics=[Topic("orders", partitions=4)],
            group=Group(2, client=self.client, python=PYTHONS[self.client], protocol=protocol, config=times),
            workload=PollLoop(rate_hz=500),
            schedule=[at(2, MoveCoordinator(), expect="coordinator_moved")],
            kafka=self.kafka,
        )

    @property
    def works(self) -> bool:
        """Whether such members can talk to such brokers."""
        return self.kafka.startswith("3.") or parse(self.client).kafka_4


PAIRS = [Pair(client, kafka) for client in PYTHONS for kafka in KAFKAS]
WORKING = [pair for pair in PAIRS if pair.works]


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Pair:
    """A pair, with all that it needs made: no part of the test's time."""
    wanted: Pair = request.param
    spec = wanted.scenario.cluster_spec()
    provision.kafka(version=spec.kafka)
    try:
        environments.interpreter(spec.members[0])
    except ProvisionError as error:
        if "there is no Python" in str(error) or "is there a network" in str(error):
            pytest.skip(str(error))
        raise
    return wanted


@pytest.mark.parametrize("pair", WORKING, indirect=True, ids=str)
def test_a_group_of_a_release_lives_through_a_move_of_its_coordinator(chaos, pair):
    run = chaos.run(pair.scenario)
    assert run.verdict.validity is Validity.VALID, run.verdict
    assert f"Kafka version: {pair.kafka} " in (run.folder / "logs" / "broker-1.log").read_text()
    lines = (run.folder / "history" / "events" / "member-0.1.jsonl").read_text().splitlines()
    [began] = [event["detail"] for event in map(json.loads, lines) if event["kind"] == "started"]
    if python := PYTHONS[pair.client]:
        assert began["client_version"].startswith(parse(pair.client).version)
        assert began["python"].startswith(f"{python}.")


@pytest.mark.parametrize("pair", sorted(set(PAIRS) - set(WORKING), key=str), ids=str)
def test_who_cannot_talk_to_these_brokers_is_refused_before_the_start(pair):
    with pytest.raises(ScenarioError, match=r"cannot talk to Kafka 4, .* use a later release, or an older Kafka"):
        server_properties.check(pair.scenario.cluster_spec())


def test_a_setting_that_a_release_does_not_have_is_an_error_before_anything_starts(tmp_path):
    config = {"isolation.level": "read_committed"}
    group = Group(1, "kafka-python==2.0.2", "eager", config, python=PYTHONS["kafka-python==2.0.2"])
    asked = Scenario("an old release", [Topic("orders", partitions=1)], group, PollLoop())
    said = (
        "kafka-python 2.0.2 rejects the group's config: kafka-python refuses .*: this release has no isolation.level$"
    )
    with pytest.raises(ScenarioError, match=said):
        runner.run(asked, plan=asked.plan(1), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
