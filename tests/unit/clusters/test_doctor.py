"""The doctor: what is missing is a sentence with its remedy."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.clusters import backends, doctor
from fencepost.clusters.doctor import Readiness
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError
from fencepost.network import packets


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with an empty PATH, an empty cache and no Docker engine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    provision.java.cache_clear()
    yield tmp_path
    provision.java.cache_clear()


def states(runs: Path) -> dict[str, Readiness]:
    return {part.name: part.state for part in doctor.examine(runs)}


def test_everything_is_looked_at_and_a_line_says_what_was_found(tmp_path: Path) -> None:
    parts = doctor.examine(tmp_path)
    names = {
        "Python",
        "Java",
        "Kafka",
        "Toxiproxy",
        "ss",
        "loopback",
        "signals",
        "disk",
        "memory",
        "packets",
        "redirects",
        "netem",
    }
    assert {part.name for part in parts} == names | {"members", "Spark", "Docker"}
    assert all(part.text and part.line().startswith(part.state) for part in parts)


def test_on_a_bare_machine_java_toxiproxy_and_ss_are_missing_with_remedies(bare: Path) -> None:
    missing = {
        part.name: part.text for part in doctor.missing_parts(backends.local(), bare) if part.state is Readiness.MISSING
    }
    assert {"Java", "Toxiproxy", "ss"} <= set(missing)
    assert all("install" in missing[name] for name in ("Java", "Toxiproxy", "ss"))
    with pytest.raises(ProvisionError, match="Java: no java on the PATH: install Java 17"):
        doctor.require(backends.local(), bare)


def test_without_iptables_a_run_does_without_faults_of_packets(bare: Path) -> None:
    part = next(part for part in doctor.examine(bare) if part.name == "packets")
    assert part.state is Readiness.OPTIONAL
    assert "iptables, which loses and redirects packets, is missing: install it" in part.text


def test_without_rights_packets_can_be_lost_in_a_network_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("unshare") is None or subprocess.run([*doctor.ALONE, "true"], check=False).returncode:
        pytest.skip("this system gives users no network of their own")
    if subprocess.run([*doctor.ALONE, "iptables", "-S"], capture_output=True, check=False).returncode:
        pytest.skip("there is no iptables for it")
    monkeypatch.setattr(packets, "missing_reason", lambda: "iptables refused")
    part = next(part for part in doctor.examine(tmp_path) if part.name == "packets")
    assert part.state is Readiness.OPTIONAL
    assert part.text.startswith("faults that lose packets are not possible: iptables refused; ")
    assert part.text.endswith(f": {shlex.join(doctor.ALONE)}")


def test_an_old_java_is_missing(bare: Path) -> None:
    java = bare / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    part = next(part for part in doctor.examine(bare) if part.name == "Java")
    assert part.state is Readiness.MISSING
    assert "is Java 11: install 17 or later" in part.text


def test_kafka_comes_later_while_the_cache_is_empty(bare: Path) -> None:
    assert states(bare)["Kafka"] is Readiness.LATER


def test_with_go_toxiproxy_comes_later(bare: Path) -> None:
    (bare / "go").write_text("#!/bin/sh\n")
    (bare / "go").chmod(0o755)
    assert states(bare)["Toxiproxy"] is Readiness.LATER


def test_a_full_disk_is_missing_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "RUN_BYTES", 10**18)
    part = next(part for part in doctor.examine(tmp_path) if part.name == "disk")
    assert part.state is Readiness.MISSING
    assert "--runs" in part.text


def test_little_memory_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MEMORY_BYTES", 10**18)
    part = next(part for part in doctor.examine(tmp_path) if part.name == "memory")
    assert part.state is Readiness.MISSING
    assert part.text.endswith("end other programs, or use --cluster attach:HOST:PORT")


def test_an_address_that_is_not_ours_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LOOPBACK", "192.0.2.1")
    part = next(part for part in doctor.examine(tmp_path) if part.name == "loopback")
    assert part.state is Readiness.MISSING
    assert "192.0.2.1 cannot be used" in part.text


def test_a_machine_without_docker_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    part = next(part for part in doctor.examine(tmp_path) if part.name == "Docker")
    assert part.state is Readiness.OPTIONAL
    assert "DOCKER_HOST" in part.text
    assert part not in doctor.missing_parts(backends.local(), tmp_path)
