"""Getting Toxiproxy: from the PATH, by Go, or by Docker; what is missing or too old is a sentence with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.clusters import toxiproxy
from fencepost.errors import ProvisionError

RECENT = "echo 'toxiproxy-server version 2.12.0'"


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty cache and no Docker engine, and nothing on its PATH but what a test puts there."""
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("FENCEPOST_TOXIPROXY_IMAGE", raising=False)
    return tmp_path


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_toxiproxy_on_the_path_is_taken(bare: Path) -> None:
    program(bare / "bin", "toxiproxy-server", RECENT)
    assert toxiproxy.there() == bare / "bin" / "toxiproxy-server"
    assert toxiproxy.server() == bare / "bin" / "toxiproxy-server"


@pytest.mark.parametrize("said", ["Toxiproxy version 2.1.4", "toxiproxy-server version 2.9.0", "hello"])
def test_one_that_is_too_old_or_something_else_is_a_sentence(bare: Path, said: str) -> None:
    program(bare / "bin", "toxiproxy-server", f"echo '{said}'")
    with pytest.raises(ProvisionError, match=rf"is not Toxiproxy >= 2.12 \(it prints '{said}'\): install Go"):
        toxiproxy.server()


def test_one_that_does_not_run_here_is_a_sentence(bare: Path) -> None:
    program(bare / "bin", "toxiproxy-server", "exit 3")
    with pytest.raises(ProvisionError, match=r"toxiproxy-server -version does not work .*no toxiproxy-server for this"):
        toxiproxy.server()


def test_without_any_way_all_three_remedies_are_named(bare: Path) -> None:
    assert toxiproxy.there() is None
    remedies = r"install Go >= 1.23 .*toxiproxy-server >= 2.12 on the PATH, or start a Docker engine .*set DOCKER_HOST"
    for look in (toxiproxy.server, toxiproxy.way):
        with pytest.raises(ProvisionError, match=remedies):
            look()


def test_a_named_image_without_an_engine_is_a_sentence(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare / "bin", "toxiproxy-server", RECENT)
    monkeypatch.setenv("FENCEPOST_TOXIPROXY_IMAGE", "ours")
    with pytest.raises(ProvisionError, match="no Docker engine answers: start one"):
        toxiproxy.server()


def test_go_builds_it_once_and_what_it_is_stands_beside_it(bare: Path) -> None:
    script = f'printf "#!/bin/sh\\n{RECENT}\\n" > $GOBIN/server; /bin/chmod +x $GOBIN/server'
    program(bare / "bin", "go", script)
    assert toxiproxy.way() == f"builds Toxiproxy 2.12.0 with {bare}/bin/go"
    said: list[str] = []
    server = toxiproxy.server(said.append)
    assert said == ["building Toxiproxy 2.12.0 with Go (once)"]
    assert toxiproxy.server(said.append) == server == toxiproxy.there()
    assert len(said) == 1
    origin = (server.parent / "origin").read_text()
    assert f"{toxiproxy.PACKAGE}, built by {bare}/bin/go\nsha256 " in origin


def test_a_build_that_finds_no_network_says_so_and_leaves_nothing(bare: Path) -> None:
    program(bare / "bin", "go", "echo downloading; echo 'dial tcp: network is unreachable'; exit 1")
    said: list[str] = []
    with pytest.raises(ProvisionError, match=r"exit code 1: dial tcp: network is unreachable.*put a toxiproxy-server"):
        toxiproxy.server(said.append)
    assert not list((bare / "cache").glob("toxiproxy*"))
