"""Attached to brokers that want SASL or TLS: every part of a run gets in, nothing else does, and no file says how."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.attach.test_attach import SCENARIO as GUEST
from cluster.attach.test_attach import address, violations
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clusters import local
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.server_properties import Listener
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ClusterError
from fencepost.faults import Kill, MoveCoordinator, Pause
from fencepost.interfaces import ClusterSpec
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.model.clients import MemberSpec
from fencepost.processes.owner import ProcessOwner
from fencepost.schedule.entries import at, past_session
from fencepost.targets import member

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCENARIO = replace(
    GUEST,
    name="a guest with a key",
    schedule=[at(1, Kill(), member(0), heal_after=1)],
    min_records=300,
)
SECRET = "correct-horse-battery"

# What the listener of a slot is configured with on a broker.
Guard = Callable[[Listener], Mapping[str, Any]]


@contextmanager
def guarded(owner: ProcessOwner, protocol: str, *guards: Guard) -> Iterator[ManagedCluster]:
    """A cluster whose listeners of each slot want ``protocol``, as a guard configures them."""
    usual = server_properties.broker_properties

    def properties(spec: ClusterSpec, broker: int, listeners: tuple[Listener, ...], *more: Any) -> dict[str, Any]:
        found = usual(spec, broker, listeners, *more)
        protocols, slots = found["listener.security.protocol.map"], listeners[-len(guards) :]
        for guard, listener in zip(guards, slots, strict=True):
            protocols = protocols.replace(f"{listener.name}:PLAINTEXT", f"{listener.name}:{protocol}")
            prefix = f"listener.name.{listener.name.lower()}"
            found |= {f"{prefix}.{name}": value for name, value in guard(listener).items()}
        return {**found, "listener.security.protocol.map": protocols}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server_properties, "broker_properties", properties)
        running = local.start(ClusterSpec(slots=len(guards)), owner)
    yield running
    running.stop()


def unwritten(secret: str, runs: Path, beside: str) -> bool:
    """Whether no file holds a secret; ``beside`` stands in one, so that files were searched."""
    written = [path.read_bytes() for path in runs.rglob("*") if path.is_file()]
    assert any(beside.encode() in content for content in written)
    return not any(secret.encode() in content for content in written)


# --- SASL --------------------------------------------------------------------------------------------------------


def password(listener: Listener) -> Mapping[str, Any]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required username="guest" password="{SECRET}" user_guest="{SECRET}";'
    return {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": jaas}


@pytest.fixture
def with_password(session_owner: ProcessOwner) -> Iterator[ManagedCluster]:
    with guarded(session_owner, "SASL_PLAINTEXT", password) as running:
        yield running


def test_secrets_give_access_and_stand_in_no_file(
    with_password: ManagedCluster, chaos_spark: Spark, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    lines = ["# who we are", "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=guest"]
    name, runs = address(with_password, 0), tmp_path / "runs"

    config.write_text("\n".join([*lines, f"sasl.password={SECRET}-wrong"]))
    with pytest.raises(ClusterError, match="no Kafka broker answered") as refused:
        runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=runs, backend=Attachment.of(name, config))
    assert SECRET not in str(refused.value)

    config.write_text("\n".join([*lines, f"sasl.password={SECRET}"]))
    run = runner.run(SCENARIO, plan=SCENARIO.plan(2), runs=runs, backend=Attachment.of(name, config))
    verdict = judge(run, chaos_spark)
    assert {check.check: check.validity for check in verdict.checks}["delivery"] is Validity.VALID
    assert unwritten(SECRET, runs, beside="SASL_PLAINTEXT")


# --- TLS ---------------------------------------------------------------------------------------------------------


class Authority:
    """Signs certificates: ``pem`` is its own one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.pem, self._key = self._make("authority", "-nodes", "-addext", "keyUsage=critical,keyCertSign")

    def sign(self, name: str, address: str, secret: str = "") -> tuple[Path, Path]:
        """A certificate for an address, and its key, which a secret may lock."""
        locked = ["-passout", f"pass:{secret}"] if secret else ["-nodes"]
        signed = ["-CA", str(self.pem), "-CAkey", str(self._key), "-addext", f"subjectAltName=IP:{address}"]
        return self._make(name, *locked, *signed, "-addext", "basicConstraints=critical,CA:FALSE")

    def _make(self, name: str, *options: str) -> tuple[Path, Path]:
        pem, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        new = [
            "-x509",
            "-days",
            "2",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-subj",
            f"/CN={name}",
        ]
        argv = ["openssl", "req", *new, "-out", str(pem), "-keyout", str(key), *options]
        subprocess.run(argv, check=True, capture_output=True, timeout=30)
        return pem, key


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "trusted")


@pytest.fixture(scope="module")
def with_certificates(authority: Authority, session_owner: ProcessOwner) -> Iterator[ManagedCluster]:
    """Slot 0 has certificates for what brokers advertise, slot 1 for another address; both want one of the client."""

    def issued(address: str) -> Mapping[str, Any]:
        pem, key = authority.sign(f"broker-{address}", address)
        both = pem.with_suffix(".both")
        both.write_text(key.read_text() + pem.read_text())
        stores = {"ssl.keystore.location": both, "ssl.truststore.location": authority.pem}
        return {"ssl.client.auth": "required", "ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM", **stores}

    with guarded(
        session_owner, "SSL", lambda slot: issued(slot.advertised.host), lambda slot: issued("127.9.9.9")
    ) as running:
        yield running


@pytest.fixture
def settings(authority: Authority, tmp_path: Path) -> dict[str, Any]:
    """What a client of the brokers is configured with."""
    pem, key = authority.sign("guest", "127.0.0.1", SECRET)
    ours = {"ssl.certificate.location": pem, "ssl.key.location": key, "ssl.key.password": SECRET}
    return {"security.protocol": "ssl", "ssl.ca.location": authority.pem, **ours}


def attachment(cluster: ManagedCluster, slot: int, settings: Mapping[str, Any], folder: Path) -> Attachment:
    config = folder / "client.properties"
    config.write_text(server_properties.render(settings))
    return Attachment.of(address(cluster, slot), config)


def test_members_of_all_clients_have_a_certificate_and_the_brokers_have_theirs(
    with_certificates: ManagedCluster, chaos_spark: Spark, settings: dict[str, Any], tmp_path: Path
) -> None:
    members = [MemberSpec(1), MemberSpec(1, "kafka-python"), MemberSpec(1, "aiokafka")]
    steps = [at(1, MoveCoordinator()), at(2, Pause(), member(0), heal_after=past_session(1.5), expect="fenced")]
    group = replace(SCENARIO.group, members=members, protocol="eager")
    scenario = replace(SCENARIO, group=group, schedule=steps, min_records=2000)
    backend = attachment(with_certificates, 0, settings, tmp_path)
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path / "runs", backend=backend)
    verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert not violations(verdict)
    assert all(fault["took_effect"] for fault in verdict.faults)
    assert len(list((run / "history" / "delivered").iterdir())) == 3, "each of them got records"
    assert unwritten(SECRET, tmp_path / "runs", beside="ssl.ca.location")


def test_brokers_that_somebody_else_vouches_for_are_refused_and_the_reason_is_said(
    with_certificates: ManagedCluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    wrong = {**settings, "ssl.ca.location": Authority(tmp_path / "other").pem}
    backend = attachment(with_certificates, 0, wrong, tmp_path)
    with pytest.raises(
        ClusterError, match=rf"no Kafka broker answered at {backend.address} within 5 s \(.*certificate verify failed"
    ):
        runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path / "runs", backend=backend)


def test_a_certificate_for_another_host_is_refused_unless_hosts_are_not_compared(
    with_certificates: ManagedCluster, settings: dict[str, Any], tmp_path: Path
) -> None:
    backend = attachment(with_certificates, 1, settings, tmp_path)
    with pytest.raises(ClusterError, match=r"IP address mismatch, certificate is not valid for '127\.77\."):
        discover(backend.address, backend.access)
    blind = {**settings, "ssl.endpoint.identification.algorithm": "none"}
    backend = attachment(with_certificates, 1, blind, tmp_path)
    assert set(discover(backend.address, backend.access)) == set(with_certificates.brokers)
