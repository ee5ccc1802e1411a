"""Attached to brokers that want SASL or TLS: every part of a run gets in, nothing else does, and nothing says how."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from token_endpoint import SECRET, TokenEndpoint

from cluster.attach.guarded import (
    Authority,
    administrator,
    guarded,
    make_scram_user,
    over_tls,
    password,
    scram,
    tokens,
    with_certificate,
)
from cluster.attach.test_attach import SCENARIO as GUEST
from cluster.attach.test_attach import address, violations
from cluster.programs.test_own_program_in_python import PROGRAMS as IN_PYTHON
from cluster.worlds import LONG_S
from fencepost import Group, runner
from fencepost.checkers.spark.session import Spark
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ClusterError
from fencepost.faults import Bounce, Kill, MoveCoordinator, Pause
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.model.clients import MemberSpec
from fencepost.model.settings import KAFKAS
from fencepost.processes.owner import ProcessOwner
from fencepost.schedule.entries import at, past_session
from fencepost.targets import member, one_member
from fencepost.workloads import OwnProgram

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCENARIO = replace(GUEST, name="a guest with a key", schedule=[at(1, Kill(), member(0), heal_after=1)], min_records=300)
CERTIFICATE = "certificate"
# Who wants in -> the slot of the listener that lets them in.
SLOTS = {
    "PLAIN": 0,
    "SCRAM-SHA-256": 1,
    "SCRAM-SHA-512": 1,
    "OAUTHBEARER": 2,
    CERTIFICATE: 3,
    "PLAIN without TLS": 5,
}
FOR_ANOTHER_HOST = 4
LOOK_S = 0.3


@pytest.fixture(scope="module", params=[KAFKAS[0], pytest.param(KAFKAS[1], marks=pytest.mark.slow)])
def kafka(request: pytest.FixtureRequest) -> str:
    """The version of the brokers."""
    return str(request.param)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "trusted")


@pytest.fixture(scope="module")
def endpoint(authority: Authority) -> Iterator[TokenEndpoint]:
    found = TokenEndpoint(
        life_s=20, certificate=authority.sign("login", "127.0.0.1")
    )  # so that clients that run longer need a second one
    yield found
    found.close()


@pytest.fixture(scope="module")
def brokers(kafka: str, authority: Authority, session_owner: ProcessOwner) -> Iterator[ManagedCluster]:
    """What lets in: see ``SLOTS``. The user ``guest`` may do everything there."""
    guards = [over_tls(guard, authority) for guard in (password, scram, tokens)]
    guards += [with_certificate(authority), with_certificate(authority, "127.9.9.9"), password]
    with guarded(session_owner, *guards, kafka=kafka, masters=("guest", "CN=guest")) as running:
        make_scram_user(running, "guest")
        yield running


@pytest.fixture
def settings(authority: Authority, endpoint: TokenEndpoint, tmp_path: Path) -> Mapping[str, dict[str, Any]]:
    """What a client is configured with, by who wants in."""
    tls = {"security.protocol": "SASL_SSL", "ssl.ca.location": authority.pem}
    user = {"sasl.username": "guest", "sasl.password": SECRET}
    of_password = {name: {**tls, "sasl.mechanism": name, **user} for name in SLOTS if SLOTS[name] in (0, 1)}
    pem, key = authority.sign("guest", "127.0.0.1", SECRET)
    prefix = "sasl.oauthbearer"
    return {
        **of_password,
        "OAUTHBEARER": {
            **tls,
            "sasl.mechanisms": "OAUTHBEARER",
            f"{prefix}.method": "oidc",
            f"{prefix}.token.endpoint.url": endpoint.url,
            f"{prefix}.client.id": "guest",
            f"{prefix}.client.secret": SECRET,
            "https.ca.location": authority.pem,
            f"{prefix}.scope": "kafka",
            f"{prefix}.extensions": "purpose=test,zone=1",
        },
        CERTIFICATE: {
            "security.protocol": "ssl",
            "ssl.ca.location": authority.pem,
            "ssl.certificate.location": pem,
            "ssl.key.location": key,
            "ssl.key.password": SECRET,
        },
        "PLAIN without TLS": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **user},
    }


def attachment(cluster: ManagedCluster, slot: int, settings: Mapping[str, Any], folder: Path) -> Attachment:
    config = folder / "client.properties"
    config.write_text("# who we are\n" + server_properties.render(settings))
    return Attachment.of(address(cluster, slot), config)


@contextmanager
def kept_from_others(runs: Path, caplog: pytest.LogCaptureFixture, endpoint: TokenEndpoint) -> Iterator[None]:
    """No argument of a process, no file of a run and no log has the secret or a token, while and after this runs."""
    seen, over = set[str](), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(process.read_text(errors="replace"))
                except OSError:
                    continue  # it has ended

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()
    written = [path.read_text(errors="replace") for path in runs.rglob("*") if path.is_file()]
    assert any("fencepost_member" in argv for argv in seen), "members were seen"
    assert any("security.protocol" in content for content in written), "their settings were written"
    for secret in (SECRET, *endpoint.given):
        assert not [content[:200] for content in (*seen, *written, caplog.text) if secret in content]


# --- what gives access -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", SLOTS)
def test_members_of_all_clients_get_in_and_so_does_the_rest_of_the_run(
    brokers: ManagedCluster,
    chaos_spark: Spark,
    settings: Mapping[str, dict[str, Any]],
    endpoint: TokenEndpoint,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    who: str,
) -> None:
    members = [MemberSpec(1), MemberSpec(1, "kafka-python"), MemberSpec(1, "aiokafka")]
    steps = [at(1, MoveCoordinator()), at(2, Pause(), member(0), heal_after=past_session(1.5), expect="fenced")]
    group = replace(SCENARIO.group, members=members, protocol="eager")
    scenario = replace(SCENARIO, group=group, schedule=steps, min_records=2000)
    backend = attachment(brokers, SLOTS[who], settings[who], tmp_path)
    with kept_from_others(tmp_path / "runs", caplog, endpoint):
        run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path / "runs", backend=backend)
        verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert not violations(verdict)
    assert all(fault["took_effect"] for fault in verdict.faults)
    assert len(list((run / "history" / "delivered").iterdir())) == 3, "each of them got records"
    assert not left_of(brokers, backend), "the clean-up process gets in, too"


def left_of(cluster: ManagedCluster, backend: Attachment) -> list[str]:
    """Topics and groups of a run."""
    admin = administrator(cluster)
    names = [*admin.list_topics(timeout=LONG_S).topics]
    names += [group.group_id for group in admin.list_consumer_groups().result(LONG_S).valid]
    return [name for name in names if name.startswith(backend.prefix)]


OWN_ACCESS = (
    'security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_plain_username="u", sasl_plain_password="p"'
)
CONFLUENT = """
import json, signal, sys
from confluent_kafka import Consumer, KafkaException

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
consumer = Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
    "enable.auto.commit": False, "security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER",
    "oauth_cb": lambda _: sys.exit("the program's own tokens are asked for"), "ssl.ca.location": "/none",
})
consumer.subscribe(["orders"])
try:
    while True:
        message = consumer.poll(0.5)
        if message is None or message.error():
            continue
        json.loads(message.value())
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            print("commit failed:", error, file=sys.stderr)
finally:
    consumer.close()
"""
PROGRAMS = {
    "confluent-kafka": CONFLUENT,
    **{
        client: "AHEAD = 0\n" + text.replace('group_id="shop"', f'group_id="shop", {OWN_ACCESS}')
        for client, text in IN_PYTHON.items()
    },
}


@pytest.mark.parametrize(
    ("client", "who"),
    [*((client, "OAUTHBEARER") for client in PROGRAMS), ("kafka-python", CERTIFICATE), ("aiokafka", "SCRAM-SHA-512")],
)
def test_a_program_gets_in_with_the_runs_settings_instead_of_its_own(
    brokers: ManagedCluster,
    chaos_spark: Spark,
    settings: Mapping[str, dict[str, Any]],
    endpoint: TokenEndpoint,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    who: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAMS[client], encoding="utf-8")
    Path("fakes.py").write_text("def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8")
    config = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
    command = [sys.executable, "program.py"]
    group = Group(command=command, client=client, members=2, protocol="eager", config=config)
    workload = OwnProgram(payload="fakes:order", rate_hz=100)
    steps = [at(2, Bounce(), one_member(), heal_after=1)]
    scenario = replace(SCENARIO, group=group, workload=workload, schedule=steps, min_records=300)
    backend = attachment(brokers, SLOTS[who], settings[who], tmp_path)
    with kept_from_others(tmp_path / "runs", caplog, endpoint):
        run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path / "runs", backend=backend)
        verdict = judge(run, chaos_spark)
    for log in (run / "logs").glob("member-*"):
        print(log.name, log.read_text()[-2000:])
    assert {check.check: check.validity for check in verdict.checks}["delivery"] is Validity.VALID


# --- what does not -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "wrong", "why"),
    [
        *[
            (who, {"sasl.password": f"{SECRET}-wrong"}, "are its SASL settings right")
            for who in SLOTS
            if SLOTS[who] in (0, 1, 5)
        ],
        ("OAUTHBEARER", {"sasl.oauthbearer.client.secret": f"{SECRET}-wrong"}, "refused: 401 Unauthorized"),
        ("OAUTHBEARER", {"sasl.oauthbearer.scope": "other"}, "are its SASL settings right"),
        ("OAUTHBEARER", {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:9/"}, "9/ did not answer: .*refused"),
    ],
)
def test_wrong_credentials_are_refused_and_no_message_has_them(
    brokers: ManagedCluster, settings: Mapping[str, dict[str, Any]], tmp_path: Path, who: str, wrong: Any, why: str
) -> None:
    backend = attachment(brokers, SLOTS[who], {**settings[who], **wrong}, tmp_path)
    with pytest.raises(
        ClusterError, match=f"no Kafka broker answered at {backend.address} within 5 s.*{why}"
    ) as refused:
        discover(backend.address, backend.access)
    assert SECRET not in str(refused.value)


def test_brokers_that_somebody_else_vouches_for_are_refused_and_the_reason_is_said(
    brokers: ManagedCluster, settings: Mapping[str, dict[str, Any]], tmp_path: Path
) -> None:
    wrong = {**settings[CERTIFICATE], "ssl.ca.location": Authority(tmp_path / "other").pem}
    backend = attachment(brokers, SLOTS[CERTIFICATE], wrong, tmp_path)
    with pytest.raises(
        ClusterError, match=rf"no Kafka broker answered at {backend.address} within 5 s \(.*certificate verify failed"
    ):
        discover(backend.address, backend.access)


def test_a_certificate_for_another_host_is_refused_unless_hosts_are_not_compared(
    brokers: ManagedCluster, settings: Mapping[str, dict[str, Any]], tmp_path: Path
) -> None:
    backend = attachment(brokers, FOR_ANOTHER_HOST, settings[CERTIFICATE], tmp_path)
    with pytest.raises(ClusterError, match=r"IP address mismatch, certificate is not valid for '127\.77\."):
        discover(backend.address, backend.access)
    blind = {**settings[CERTIFICATE], "ssl.endpoint.identification.algorithm": "none"}
    backend = attachment(brokers, FOR_ANOTHER_HOST, blind, tmp_path)
    assert set(discover(backend.address, backend.access).brokers) == set(brokers.brokers)
