"""Docker: whether an engine answers, containers of testcontainers, and files from an image or a build.

Only the modules with this prefix import docker and testcontainers. Both are imported where they are used: the command
line starts without them.
"""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache as once
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from fencepost.errors import ClusterError, FencepostError, ProvisionError

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

ANSWER_S = 3
CALL_S = 60.0
PULL_S = 900.0
RYUK_S = 10.0
_STARTING_RYUK = Lock()
NO_ENGINE = "no Docker engine answers: start one (dockerd), or set DOCKER_HOST"
# Official and without a host in its name, so that any registry of the engine can serve it.
GO_IMAGE = "golang:1.24-alpine"
BUILT = "/fencepost"  # the output folder of a build in a container
LABEL = "fencepost"
# Settings of a company's mirrors and proxies for Go and its downloads.
GO_SETTINGS = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def engine() -> str:
    """The version of the Docker engine that answers.

    Raises:
        ProvisionError: none does.
    """
    with client(ANSWER_S) as running:
        return str(running.version()["Version"])


def copy_from_image(image: str, paths: Sequence[str], into: Path, within_s: float) -> str:
    """Copy the first of ``paths`` that the image has, else its entry point, to the file ``into``; the image is pulled
    if the engine does not have it. Returns the image's id.

    Raises:
        ProvisionError: no engine, no such image, or none of these files in it.
    """
    must_have(image, within_s)
    with client(within_s) as running:
        pulled = running.images.get(image)
        runs = (pulled.attrs["Config"].get("Entrypoint") or [""])[0]
        place = running.containers.create(pulled, ["-"], labels=[LABEL])  # never started: a place to copy from
        try:
            for path in (*paths, runs):
                if path.startswith("/") and _copy(place, path, into):
                    return str(pulled.id)
        finally:
            place.remove(force=True)
        raise ProvisionError(f"the image {image} contains none of {', '.join(paths)}, and has no entry point")


def go_install(package: str, program: str, into: Path, within_s: float) -> str:
    """Build a package's program with the Go of ``GO_IMAGE`` into the file ``into``. Returns the image's id.

    Raises:
        ProvisionError: no engine, no such image, or the build failed or took too long; shows its output.
    """
    settings = {name: os.environ[name] for name in GO_SETTINGS if name in os.environ}
    with engine_errors("building with Go", ProvisionError):
        build = container(GO_IMAGE, within_s).with_envs(CGO_ENABLED="0", GOBIN=BUILT, **settings)
        with build.with_kwargs(entrypoint=["go", "install", package], labels={LABEL: ""}):
            code, built = build.wait(), build.get_wrapped_container()
            if code or not _copy(built, f"{BUILT}/{program}", into):
                output = built.logs(tail=5).decode(errors="replace").strip() or "it printed nothing"
                raise ProvisionError(f"go install in {GO_IMAGE} ended with exit code {code}: {output[-300:]}.")
            return str(built.attrs["Image"])


def container(image: str, timeout_s: float = CALL_S) -> DockerContainer:
    """A container that can be described and started; Ryuk guards it where that is possible.

    Raises:
        ClusterError, DockerException: no engine answers.
    """
    from testcontainers.core.container import DockerContainer

    start_ryuk()
    return DockerContainer(image, {"timeout": timeout_s})


def start_ryuk() -> None:
    """Begin to start Ryuk, once in a process: it removes containers and networks if this process and its reaper die.

    Nothing depends on it or waits for it. The run goes on without Ryuk if testcontainers is configured so, if the image
    is not there and cannot be pulled, or if it does not start. A Ryuk that the user's own containers started is used.
    """
    with _STARTING_RYUK:
        _start_ryuk_once()


@once
def _start_ryuk_once() -> None:
    from testcontainers.core.config import testcontainers_config as config
    from testcontainers.core.container import Reaper

    if Reaper._instance is not None:
        return
    # Where names of images have a prefix, testcontainers 4.15 takes Ryuk for one more container (its issue 1085).
    possible = not (config.ryuk_disabled or config.hub_image_name_prefix)
    config.ryuk_disabled = True  # no container waits for it
    if possible:
        Thread(target=_start_ryuk, name="ryuk", daemon=True).start()


def _start_ryuk() -> None:
    from testcontainers.core.config import testcontainers_config as config
    from testcontainers.core.container import Reaper
    from testcontainers.core.labels import SESSION_ID

    try:
        must_have(config.ryuk_image, RYUK_S)
        Reaper.get_instance()
        config.ryuk_disabled = False  # the user's own containers find it
    except Exception:  # whatever the library raises: our reaper removes the same
        with suppress(ProvisionError), client() as running:
            running.containers.get(f"testcontainers-ryuk-{SESSION_ID}").remove(force=True)


@contextmanager
def client(timeout_s: float | None = CALL_S) -> Iterator[Any]:
    """A client of the engine, once that answers; every failure inside the block becomes a ProvisionError.

    ``timeout_s``: the limit for each answer; None: there is none.
    """
    from docker.errors import DockerException
    from testcontainers.core.docker_client import DockerClient

    try:
        _knock()
        engine = DockerClient(timeout=ANSWER_S).client  # the same engine as that of testcontainers
    except (DockerException, OSError) as error:
        raise ProvisionError(NO_ENGINE) from error
    engine.api.timeout = timeout_s
    try:
        with engine_errors("a request", ProvisionError):
            yield engine
    finally:
        engine.close()


def must_have(image: str, within_s: float = PULL_S) -> None:
    """Pull an image that is not there. Raises ProvisionError: it cannot be pulled, or nothing comes for so long."""
    from docker.errors import ImageNotFound

    with client(within_s) as running, engine_errors(f"pulling {image}", ProvisionError):
        try:
            running.images.get(image)
        except ImageNotFound:
            running.images.pull(image)


def copy_folder(engine: Any, container: str, folder: str, into: Path, ending: str) -> bool:
    """Copy the files with an ending out of a folder of a container, with the folder's name; False if there is none.

    Raises:
        ClusterError: the engine refused.
    """
    from docker.errors import NotFound

    with engine_errors(f"reading {folder} in a container"):
        try:
            stream, _ = engine.api.get_archive(container, folder)
        except NotFound:
            return False
        try:
            with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
                tar.extractall(into, [one for one in tar if one.name.endswith(ending)], filter="data")
        except (tarfile.TarError, OSError) as error:
            raise ClusterError(f"the copy of {folder} in a container cannot be read: {error}") from error
    return True


@contextmanager
def engine_errors(what: str, kind: type[FencepostError] = ClusterError) -> Iterator[None]:
    """In the block, every refusal or time-out of the engine becomes an error of this kind about ``what``."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException) as error:
        raise kind(f"{what} failed; the Docker engine reports: {str(error)[:300]}") from error


def address() -> str:
    """Where the engine is asked: an address of a socket file or of a network."""
    from testcontainers.core.docker_client import get_docker_host

    return str(get_docker_host() or "unix:///var/run/docker.sock")


def _knock() -> None:
    """Connect to a socket file once and close: the library does not close a socket on which nothing answers."""
    scheme, _, path = address().partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ANSWER_S)
            probe.connect(path)


def _copy(container: Any, path: str, into: Path) -> bool:
    """Copy one program out of a container; False when there is no such file."""
    from docker.errors import NotFound

    try:
        stream, stat = container.get_archive(path)
        if stat["linkTarget"]:
            stream, _ = container.get_archive(stat["linkTarget"])
    except NotFound:
        return False
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
        content = tar.extractfile(tar.getmembers()[0])
        if content is None:
            return False
        into.write_bytes(content.read())
    into.chmod(0o755)
    return True


def run_again(engine: Any, container: str) -> None:
    """Let a paused container run, or start one that has ended. Raises DockerException, RequestException."""
    state = engine.api.inspect_container(container)["State"]
    if state["Paused"]:
        engine.api.unpause(container)
    elif not state["Running"]:
        engine.api.start(container)
