"""In containers: members of other clients, and the workloads whose members write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.docker.test_docker_programs import nothing_left, performed  # noqa: F401 (a fixture)
from cluster.plans import WRITING, under
from cluster.planted import BUGS
from cluster.programs import test_lines
from cluster.programs.test_black_box import broken, reasons
from fencepost import Scenario
from fencepost.checkers.spark.session import Spark
from fencepost.model import Validity
from fencepost.model.clients import MemberSpec

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.docker,
    pytest.mark.spark,
    pytest.mark.timeout(600),  # images are built
]
WRONG = ("offsets-later", "letter-per-attempt", "unwritten-copies", "lock-without-token")


@pytest.mark.parametrize("scenario", WRITING, ids=lambda scenario: scenario.name)
def test_members_that_write_keep_their_promises(tmp_path: Path, chaos_spark: Spark, scenario: Scenario) -> None:
    verdict = performed(under("cooperative", scenario), tmp_path, chaos_spark)
    assert verdict.validity is Validity.VALID, reasons(verdict)


@pytest.mark.parametrize("name", WRONG)
def test_their_bugs_are_found(tmp_path: Path, chaos_spark: Spark, name: str) -> None:
    verdict = performed(BUGS[name].scenario("cooperative"), tmp_path, chaos_spark)
    assert BUGS[name].kinds <= broken(verdict) <= {*BUGS[name].kinds, *BUGS[name].may_follow}


@pytest.mark.parametrize(
    ("protocol", "clients"),
    [
        ("consumer", ["verifiable-consumer"] * 3),  # in the image of the brokers
        ("eager", ["verifiable-consumer", "confluent-kafka", "aiokafka"]),
        ("eager", ["kafka-python"] * 3),  # cooperative ones claim what they have lost (see harness/member)
    ],
)
def test_members_of_other_clients_keep_their_promises(
    tmp_path: Path, chaos_spark: Spark, protocol: str, clients: list[str]
) -> None:
    members = tuple(MemberSpec(1, client) for client in clients)
    group = replace(test_lines.SCENARIO.group, protocol=protocol, client=clients[0], members=members)
    verdict = performed(replace(test_lines.SCENARIO, group=group), tmp_path, chaos_spark)
    assert verdict.validity is Validity.VALID, reasons(verdict)
