"""Docker: whether an engine answers, and getting files out of an image or a build.

Only the modules with this prefix import docker.
"""

from __future__ import annotations

import os
import shutil
import socket
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fencepost.errors import ClusterError, ProvisionError

ANSWER_S = 3
CALL_S = 60.0
PULL_S = 900.0
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
    with client(within_s) as running:
        pulled = _image(running, image)
        runs = (pulled.attrs["Config"].get("Entrypoint") or [""])[0]
        container = running.containers.create(pulled, ["-"], labels=[LABEL])  # never started: a place to copy from
        try:
            for path in (*paths, runs):
                if path.startswith("/") and _copy(container, path, into):
                    return str(pulled.id)
        finally:
            container.remove(force=True)
        raise ProvisionError(f"the image {image} contains none of {', '.join(paths)}, and has no entry point")


def go_install(package: str, program: str, into: Path, within_s: float) -> str:
    """Build a package's program with the Go of ``GO_IMAGE`` into the file ``into``. Returns the image's id.

    Raises:
        ProvisionError: no engine, no such image, or the build failed or took too long; shows its output.
    """
    settings = {name: os.environ[name] for name in GO_SETTINGS if name in os.environ}
    environment = {"CGO_ENABLED": "0", "GOBIN": BUILT, **settings}
    with client(within_s) as running:
        pulled = _image(running, GO_IMAGE)
        container = running.containers.run(
            pulled, entrypoint=["go", "install", package], environment=environment, labels=[LABEL], detach=True
        )
        try:
            code = container.wait(timeout=within_s)["StatusCode"]
            output = container.logs(tail=5).decode(errors="replace").strip() or "it printed nothing"
            if code or not _copy(container, f"{BUILT}/{program}", into):
                raise ProvisionError(f"go install in {GO_IMAGE} ended with exit code {code}: {output[-300:]}.")
        finally:
            container.remove(force=True, v=True)
        return str(pulled.id)


def open_client(timeout_s: float = CALL_S) -> Any:
    """A client of the engine, to be closed.

    Raises:
        ProvisionError: none answers.
    """
    import docker
    from docker.errors import DockerException

    try:
        _knock()
        engine = docker.from_env(timeout=ANSWER_S)
        engine.ping()
    except (DockerException, OSError) as error:
        raise ProvisionError(NO_ENGINE) from error
    engine.api.timeout = timeout_s
    return engine


@contextmanager
def client(timeout_s: float = CALL_S) -> Iterator[Any]:
    """A client of the engine, once that answers; every failure inside the block becomes a ProvisionError."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    engine = open_client(timeout_s)
    try:
        yield engine
    except (DockerException, RequestException) as error:
        raise ProvisionError(f"the Docker engine failed: {str(error)[:300]}") from error
    finally:
        engine.close()


def must_have(image: str) -> None:
    """Pull an image that is not there. Raises ProvisionError: it cannot be pulled."""
    with client(PULL_S) as running:
        _image(running, image)


def copy_folder(engine: Any, container: str, folder: str, into: Path, ending: str) -> bool:
    """Copy the files with an ending out of a folder of a container, with the folder's name; False if there is none.

    Raises:
        ClusterError: the engine refused.
    """
    from docker.errors import NotFound

    with engine_errors(f"reading {folder} in a container"), tempfile.TemporaryFile() as archive:
        try:
            archive.writelines(engine.api.get_archive(container, folder)[0])
        except NotFound:
            return False
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tar:
            tar.extractall(into, [one for one in tar if one.name.endswith(ending)], filter="data")
    return True


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """In the block, every refusal or time-out of the engine becomes a ClusterError about ``what``."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException) as error:
        raise ClusterError(f"{what} failed; the Docker engine reports: {str(error)[:300]}") from error


def _knock() -> None:
    """Connect to a socket file once and close: the library does not close a socket on which nothing answers."""
    scheme, _, path = (os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock").partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ANSWER_S)
            probe.connect(path)


def _image(client: Any, name: str) -> Any:
    from docker.errors import ImageNotFound

    try:
        return client.images.get(name)
    except ImageNotFound:
        return client.images.pull(name)


def _copy(container: Any, path: str, into: Path) -> bool:
    """Copy one file out of a container; False when there is no such file."""
    from docker.errors import NotFound

    try:
        stream, stat = container.get_archive(path)
        if stat["linkTarget"]:
            stream, stat = container.get_archive(stat["linkTarget"])
    except NotFound:
        return False
    with tempfile.TemporaryFile() as archive:
        archive.writelines(stream)
        archive.seek(0)
        return _extract(archive, into)


def _extract(archive: BinaryIO, into: Path) -> bool:
    with tarfile.open(fileobj=archive) as tar:
        member = tar.next()
        source = tar.extractfile(member) if member is not None and member.isfile() else None
        if source is None:
            return False
        with into.open("wb") as target:
            shutil.copyfileobj(source, target)
    into.chmod(0o755)
    return True


def run_again(engine: Any, containers: Sequence[str]) -> list[str]:
    """Let paused containers run, and start those that have ended; returns a sentence about each failure."""
    from docker.errors import DockerException

    left = []
    for container in containers:
        try:
            state = engine.api.inspect_container(container)["State"]
            if state["Paused"]:
                engine.api.unpause(container)
            elif not state["Running"]:
                engine.api.start(container)
        except DockerException as error:
            left.append(f"the container {container[:12]} as it is now ({error})")
    return left
