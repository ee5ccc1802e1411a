"""Docker as a provider, on a real engine; its image is made here from files of this machine, no registry is asked."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker as library
import pytest
from testcontainers.core.config import testcontainers_config as config
from testcontainers.core.labels import SESSION_ID

from fencepost.clusters import toxiproxy
from fencepost.clusters.docker import engine as docker_engine
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError

# What stands for Go in the image: it looks at what it is asked for, and gives the server that it carries.
GO = f"""#!/bin/sh
[ "$*" = "install {toxiproxy.PACKAGE}" ] && [ "$CGO_ENABLED" = 0 ] || {{ echo "asked for $*"; exit 9; }}
[ "$GOPROXY" != off ] || {{ echo "module lookup disabled by GOPROXY=off"; exit 1; }}
mkdir -p "$GOBIN" && cp /toxiproxy "$GOBIN/server"
"""


@pytest.fixture(scope="session", autouse=True)
def engine() -> None:
    try:
        docker_engine.engine()
    except ProvisionError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    client = library.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(client: Any) -> Iterator[str]:
    """An image of Toxiproxy as its makers build it, with the little more that a build in a container takes."""
    tools = {f"bin/{tool}": str(shutil.which(tool)) for tool in ("sh", "mkdir", "cp")}
    said = subprocess.check_output(["ldd", *tools.values()], text=True)
    libraries = {path: path for path in re.findall(r"(/\S+) \(0x", said)}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, path in {"toxiproxy": toxiproxy.server(), **tools, **libraries}.items():
            tar.add(Path(path).resolve(), name)
        go = tarfile.TarInfo("bin/go")
        go.mode, go.size = 0o755, len(GO)
        tar.addfile(go, io.BytesIO(GO.encode()))
    name = f"fencepost-test-{uuid.uuid4().hex[:8]}"
    client.api.import_image_from_data(archive.getvalue(), name, "1", changes=['ENTRYPOINT ["/toxiproxy"]'])
    yield f"{name}:1"
    client.images.remove(f"{name}:1", force=True)


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str) -> None:
    """A machine with Docker alone: an empty cache, neither Go nor Toxiproxy on the PATH."""
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FENCEPOST_TOXIPROXY_IMAGE", raising=False)
    monkeypatch.setattr(docker_engine, "GO_IMAGE", image)
    monkeypatch.setattr(provision, "FETCH_S", 30.0)


@pytest.fixture(autouse=True)
def no_container_is_left(client: Any, image: str) -> Iterator[None]:
    """None of this session's image; another session on the machine may have its own."""
    yield
    left = client.containers.list(all=True, filters={"ancestor": image})
    assert not [(c.name, c.status, c.attrs["Created"], c.attrs["Path"]) for c in left]


def works(server: Path) -> bool:
    return "version" in subprocess.check_output([server, "-version"], text=True)


pytestmark = pytest.mark.docker


def test_the_server_is_taken_out_of_a_named_image_once(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_TOXIPROXY_IMAGE", image)
    assert toxiproxy.way() == f"copies Toxiproxy from the image {image}"
    said: list[str] = []
    server = toxiproxy.server(said.append)
    assert works(server)
    assert toxiproxy.server(said.append) == server == toxiproxy.there()
    assert said == [f"copying Toxiproxy from the image {image} (once)"]
    assert re.fullmatch(rf"image {image}, sha256:\w{{64}}\nsha256 \w{{64}}\n", (server.parent / "origin").read_text())


def test_with_docker_alone_the_go_of_an_image_builds_the_server(image: str) -> None:
    assert toxiproxy.way() == f"builds Toxiproxy {toxiproxy.VERSION} in {image}"
    said: list[str] = []
    server = toxiproxy.server(said.append)
    assert works(server)
    assert toxiproxy.server(said.append) == server == toxiproxy.there()
    assert len(said) == 1


def test_a_build_that_fails_says_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(
        ProvisionError, match=r"ended with exit code 1: module lookup disabled .* put a toxiproxy-server"
    ):
        toxiproxy.server()


def test_an_image_that_holds_no_toxiproxy_is_a_sentence(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    name = f"fencepost-test-{uuid.uuid4().hex[:8]}"
    client.api.import_image_from_data(empty.getvalue(), name, "1")
    monkeypatch.setenv("FENCEPOST_TOXIPROXY_IMAGE", f"{name}:1")
    try:
        with pytest.raises(ProvisionError, match=f"the image {name}:1 contains none of /toxiproxy, "):
            toxiproxy.server()
    finally:
        client.images.remove(f"{name}:1", force=True)


def test_an_image_that_nobody_has_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_TOXIPROXY_IMAGE", "fencepost.invalid/nothing:1")
    with pytest.raises(
        ProvisionError, match=r"pulling fencepost[.]invalid/nothing:1 failed; the Docker engine reports: "
    ):
        toxiproxy.server()


@pytest.mark.parametrize("what", ["missing", "broken", pytest.param("unreachable", marks=pytest.mark.slow)])
def test_all_goes_on_without_a_ryuk_that_cannot_start(
    client: Any, image: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    name = f"fencepost-test-{uuid.uuid4().hex[:8]}"
    if what == "broken":
        empty = io.BytesIO()
        tarfile.open(fileobj=empty, mode="w").close()
        client.api.import_image_from_data(empty.getvalue(), name, "1", changes=['CMD ["/nothing"]'])
    monkeypatch.setattr(config, "ryuk_image", image if what == "unreachable" else f"{name}:1")
    monkeypatch.setattr(config, "tc_host_override", "nowhere.invalid")
    try:
        docker_engine._start_ryuk()
        assert not client.containers.list(all=True, filters={"name": SESSION_ID})
    finally:
        if what == "broken":
            client.images.remove(f"{name}:1", force=True)
