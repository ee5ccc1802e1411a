"""A partition that is added to a topic while a run goes on: its records belong to the history like all others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pyarrow.dataset as ds
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from fencepost import runner
from fencepost.clock import eventually
from fencepost.clusters import backends, local
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.model.topic import Topic
from fencepost.runner.phases import RunProgress
from fencepost.scenario.scenario import Group, Scenario
from fencepost.workloads import PollLoop

pytestmark = pytest.mark.cluster

RECORDS = 50


def write(bootstrap: str) -> None:
    """All records, as soon as every broker has heard of the partition: one that has not would let them fail."""

    def known() -> bool:
        clients = [AdminClient({"bootstrap.servers": server}) for server in bootstrap.split(",")]
        return all(2 in client.list_topics("orders", timeout=10).topics["orders"].partitions for client in clients)

    eventually(known, 60, "every broker to know the added partition")
    answers: list[Any] = []
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        key = str(number).encode()
        producer.produce("orders", b"value", key, partition=2, on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(20) == 0
    assert answers == [None] * RECORDS


def test_the_members_record_it_and_the_run_knows_its_number(tmp_path: Path) -> None:
    clusters: list[ManagedCluster] = []
    added: list[str] = []

    def start(*arguments: Any) -> ManagedCluster:
        clusters.append(local.start(*arguments))
        return clusters[0]

    def add_one(progress: RunProgress) -> None:
        if progress.phase != "chaos" or added:
            return
        added.append("orders")
        admin = AdminClient({"bootstrap.servers": clusters[0].bootstrap()})
        admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(20)
        write(clusters[0].bootstrap())

    watched = replace(backends.local(), provide=start)
    scenario = Scenario(
        name="a partition comes",
        topics=[Topic("orders", partitions=2)],
        group=Group(members=2, config={"topic.metadata.refresh.interval.ms": 500}),
        workload=PollLoop(rate_hz=200),
        min_records=100,
    )
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path, observe=add_one, backend=watched)
    partitions = json.loads((run / "history/partitions.json").read_text())["partitions"]
    assert [(p["tp"], p["partition"]) for p in partitions] == [(0, 0), (1, 1), (2, 2)]
    assert partitions[2]["log_end"] == RECORDS == partitions[2]["committed"]
    delivered = ds.dataset(run / "history/delivered").to_table(filter=ds.field("tp") == 2)
    assert set(delivered["offset"].to_pylist()) == set(range(RECORDS))
    assert not [
        file["damage"] for file in json.loads((run / "history/seal.json").read_text())["files"] if file["damage"]
    ]
