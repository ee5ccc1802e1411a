"""Attached as a user with exactly the rights that the page lists, and the messages if one of them is missing."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from token_endpoint import SECRET

from cluster.attach.guarded import administrator, grant, guarded, password
from cluster.attach.test_attach import SCENARIO, address, there, violations
from cluster.worlds import LONG_S
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters.admin import OFFSETS_TOPIC, rights
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.admin.rights import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID, Right
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.attach.rights import needs
from fencepost.clusters.cache import quiet
from fencepost.clusters.kafka import provision
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import NotAuthorized
from fencepost.faults import (
    AddPartitions,
    DeleteRecords,
    Kill,
    MoveCoordinator,
    MoveLeaders,
    RecreateTopic,
    RemoveMember,
)
from fencepost.interfaces import Workload
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.model.findings import FINDINGS
from fencepost.model.settings import KAFKAS, of_kafka_3
from fencepost.processes.owner import ProcessOwner
from fencepost.schedule.entries import ScheduledFault, at
from fencepost.targets import member
from fencepost.workloads import Transform

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

PAGE = Path(__file__).parents[3] / "docs" / "choose-a-back-end.md"
USER = "guest"
ALLOW = AclPermissionType.ALLOW
# What the page calls a resource -> its type, its name and how that is meant.
RESOURCES = {
    "topics `fencepost-*`": (ResourceType.TOPIC, "fencepost-", ResourcePatternType.PREFIXED),
    "groups `fencepost-*`": (ResourceType.GROUP, "fencepost-", ResourcePatternType.PREFIXED),
    "transactional ids `fencepost-*`": (
        ResourceType.TRANSACTIONAL_ID,
        "fencepost-",
        ResourcePatternType.PREFIXED,
    ),
    "topic `__consumer_offsets`": (ResourceType.TOPIC, OFFSETS_TOPIC, ResourcePatternType.LITERAL),
    "the cluster": (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL),
}
KINDS = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TRANSACTIONAL_ID,
    ResourceType.BROKER: CLUSTER,
}
# Needs each of the rights, or says without which of them less is known.
ALL = replace(
    SCENARIO,
    workload=Transform(commit="transaction", rate_hz=300),
    schedule=[at(1, MoveCoordinator()), at(2, AddPartitions())],
)


def on_the_page() -> list[AclBinding]:
    """The rights in the page's table."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[1] in RESOURCES:
            for operation in re.findall(r"`(\w+)`", cells[0]):
                words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
                found.append(AclBinding(*RESOURCES[cells[1]], f"User:{USER}", "*", AclOperation[words], ALLOW))
    return found


def as_right(binding: AclBinding) -> tuple[str, str, str]:
    """Operation, kind and name."""
    operation = "".join(word.capitalize() for word in binding.operation.name.split("_"))
    kind = KINDS[binding.restype]
    return operation, kind, "" if kind == CLUSTER else binding.name


@pytest.fixture(scope="module", params=[KAFKAS[0], pytest.param(KAFKAS[1], marks=pytest.mark.slow)])
def kafka(request: pytest.FixtureRequest) -> str:
    """The version of the brokers."""
    return str(request.param)


@pytest.fixture(scope="module")
def brokers(kafka: str, session_owner: ProcessOwner) -> Iterator[ManagedCluster]:
    """Nobody but the master, and whoever is not asked for a name, may do anything there."""
    with guarded(session_owner, password, kafka=kafka, masters=("master",)) as running:
        yield running


@pytest.fixture
def backend(brokers: ManagedCluster, tmp_path: Path) -> Iterator[Attachment]:
    """What attaches as the user, who has no rights at first, and in the end."""
    config = tmp_path / "client.properties"
    who = f"sasl.username={USER}\nsasl.password={SECRET}"
    config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{who}")
    yield Attachment.of(address(brokers, 0), config)
    everything = (ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{USER}", None, AclOperation.ANY)
    admin = administrator(brokers)
    for answer in admin.delete_acls([AclBindingFilter(*everything, AclPermissionType.ANY)]).values():
        answer.result(LONG_S)


def missing(backend: Attachment) -> set[tuple[str, str, str]]:
    """The missing rights of everything that a run may need, as the page names them."""
    brokers = discover(backend.address, backend.access).brokers
    musts, evidence = needs(ALL, ALL.plan(1), backend.prefix)
    found = rights.missing(brokers, backend.access, [*musts, *evidence])
    return {(one.operation, one.resource, re.sub("^fencepost-.*", "fencepost-", one.name)) for one in found}


def has(backend: Attachment, *without: tuple[str, str, str]) -> None:
    """Brokers learn of rights one after the other."""
    eventually(
        lambda: missing(backend) == set(without),
        LONG_S,
        f"all brokers to know the rights without {without}",
        state=lambda: str(missing(backend)),
    )


def test_exactly_the_rights_of_the_page_are_needed(brokers: ManagedCluster, backend: Attachment) -> None:
    bindings = on_the_page()
    assert len(bindings) > 10
    grant(brokers, *bindings)
    has(backend)
    admin = administrator(brokers)
    included = AclOperation.DESCRIBE  # in others
    for binding in bindings:
        if binding.operation is included:
            continue
        one = (binding.restype, binding.name, binding.resource_pattern_type, binding.principal, "*")
        for answer in admin.delete_acls([AclBindingFilter(*one, binding.operation, ALLOW)]).values():
            assert len(answer.result(LONG_S)) == 1
        has(backend, as_right(binding))
        grant(brokers, binding)
    has(backend)


@pytest.mark.core
def test_a_run_with_the_rights_of_the_page_is_performed_and_valid(
    brokers: ManagedCluster, backend: Attachment, chaos_spark: Spark, tmp_path: Path
) -> None:
    grant(brokers, *(one for one in on_the_page() if one.restype is not ResourceType.TRANSACTIONAL_ID))
    before = there(brokers)
    run = runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=backend)
    verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert all(fault["took_effect"] for fault in verdict.faults)
    assert set(verdict.unjudged) == {kind.name for kind in FINDINGS.values() if "requests" in kind.hidden_without}
    assert there(brokers) == before, "everything could be removed"


ACTS = (MoveLeaders(("orders-1",)), AddPartitions(), DeleteRecords(keep=10))


@pytest.mark.parametrize(
    ("workload", "schedule"),
    [
        (SCENARIO.workload, [at(1, RemoveMember(), member(1)), *(at(2 + n, act) for n, act in enumerate(ACTS))]),
        (SCENARIO.workload, [at(1, RecreateTopic())]),
        (ALL.workload, [at(1, Kill(), member(0), heal_after=1)]),
    ],
    ids=["acts", "a recreated topic", "transactions"],
)
def test_so_are_an_administrators_acts_and_transactions(
    brokers: ManagedCluster,
    backend: Attachment,
    chaos_spark: Spark,
    tmp_path: Path,
    workload: Workload,
    schedule: list[ScheduledFault],
) -> None:
    grant(brokers, *on_the_page())
    before = there(brokers)
    scenario = replace(SCENARIO, workload=workload, schedule=schedule, min_records=500)
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path, backend=backend)
    verdict = judge(run, chaos_spark)
    assert [fault["took_effect"] for fault in verdict.faults] == [True] * len(schedule), verdict.faults
    assert not violations(verdict)
    assert there(brokers) == before


def test_without_the_groups_log_a_run_is_performed_and_says_what_it_does_not_judge(
    brokers: ManagedCluster, backend: Attachment, chaos_spark: Spark, tmp_path: Path
) -> None:
    hidden = [one for one in on_the_page() if one.name != OFFSETS_TOPIC]
    grant(brokers, *hidden)
    calm = replace(SCENARIO, schedule=SCENARIO.schedule[1:3], min_records=1000)
    said = list[str]()
    run = runner.run(
        calm, plan=calm.plan(1), runs=tmp_path, backend=backend, observe=lambda progress: said.append(progress.note)
    )
    verdict = judge(run, chaos_spark)
    command = f"--allow-principal 'User:{USER}' --operation Read --topic __consumer_offsets"
    assert [note for note in said if command in note], said
    assert {kind.name for kind in FINDINGS.values() if "offsets" in kind.hidden_without} <= set(verdict.unjudged)
    assert command in verdict.unjudged["unseen"]
    assert not violations(verdict)


def granting(cluster: ManagedCluster, kafka: str, command: str) -> None:
    """Do what a command for Kafka's own tool says."""
    name, *arguments = shlex.split(command)
    assert name == "kafka-acls"
    arguments[arguments.index("--bootstrap-server") + 1] = cluster.bootstrap()
    jvm = KafkaJvm(provision.java().path, tuple(provision.kafka(version=kafka)))
    tool = "kafka.admin.AclCommand" if of_kafka_3(kafka) else "org.apache.kafka.tools.AclCommand"
    subprocess.run(jvm.command(tool, *arguments), check=True, capture_output=True, timeout=LONG_S)


def test_a_run_without_rights_is_refused_with_all_that_is_missing(
    brokers: ManagedCluster, kafka: str, backend: Attachment, tmp_path: Path
) -> None:
    before = there(brokers)
    refusal = pytest.raises(NotAuthorized, match="has not all rights that the run needs in the cluster of")
    with ProcessOwner.open(tmp_path) as owner, refusal as refused:
        backend.start(ALL, ALL.plan(1), owner, quiet)
    assert there(brokers) == before
    assert SECRET not in str(refused.value)
    commands = [line for line in str(refused.value).splitlines() if line.startswith("kafka-acls ")]
    assert len(commands) > 4
    for command in commands:
        granting(brokers, kafka, command)
    has(backend)


def test_what_has_nothing_to_do_with_the_run_is_not_asked_for(backend: Attachment) -> None:
    calm = replace(SCENARIO, schedule=())
    musts, evidence = needs(calm, calm.plan(1), backend.prefix)
    assert Right("Alter", CLUSTER) not in (*musts, *evidence)
    assert not [one for one in musts if one.name == OFFSETS_TOPIC or one.resource == TRANSACTIONAL_ID]
