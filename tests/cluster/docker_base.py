"""A base image for the Docker back-end, made of this machine's own Java, Python and tools: no registry is asked."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.image import DockerImage

from fencepost.clusters.docker.engine import RYUK_S, must_have
from fencepost.clusters.docker.images import BASE, client_libraries
from fencepost.clusters.docker.removal import OWNER
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError
from fencepost.processes.owner import ProcessOwner

TOOLS = ("sh", "ss", "grep", "sleep", "cp", "rm", "chmod", "tail", "sed", "hostname")
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "__pycache__", "turtledemo"}
VERSION = 3  # of what is done here


def base_image(engine: Any) -> str:
    """The image that ``FENCEPOST_DOCKER_BASE`` names, or one of this machine's files, made once for an engine."""
    if named := os.environ.get(BASE):
        return named
    java = provision.java()
    key = f"{VERSION} {java.description} {sys.version} {java.path.resolve()}"
    name = f"fencepost-test-base:{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if not engine.images.list(name=name):
        with tempfile.TemporaryDirectory() as directory:
            archive = Path(directory) / "base.tar"
            with tarfile.open(archive, mode="w") as tar:
                found = {
                    os.path.normpath(inside).lstrip("/"): path for inside, path in files(java.path.resolve().parents[1])
                }
                for inside, path in found.items():
                    tar.add(path.resolve(), inside)
                for name_there, program in {"java": java.path, "python3": Path(sys.executable)}.items():
                    tar.addfile(entry(f"usr/bin/{name_there}", tarfile.SYMTYPE, str(program.resolve())))
                tar.addfile(entry("tmp", tarfile.DIRTYPE, mode=0o1777))
            repository, _, tag = name.partition(":")
            changes = ["ENV PATH=/usr/local/bin:/usr/bin:/bin"]
            engine.api.import_image_from_file(str(archive), repository, tag, changes=changes)
    return name


def files(java_home: Path) -> Iterator[tuple[str, Path]]:
    """Where they are in the image, and here."""
    python, stdlib = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    programs = [Path(found) for tool in TOOLS if (found := shutil.which(tool))]
    own = [path for top in (java_home, stdlib) for path in inner(top)]
    yield from ((str(path), path) for path in own)
    yield from ((f"bin/{path.name}", path) for path in programs)
    yield str(python), python
    client = [path for path in client_libraries().values() if isinstance(path, Path)]
    code = [*programs, python, java_home / "bin" / "java", *(path for path in (*own, *client) if ".so" in path.name)]
    yield from ((str(path), path) for path in sorted(libraries(code)))


def inner(top: Path) -> Iterator[Path]:
    """The files below a folder that a program needs, links and what they lead to."""
    for path in top.rglob("*"):
        if path.is_file() and not LEFT_OUT & set(path.relative_to(top).parts):
            yield path


def libraries(code: Iterable[Path]) -> set[Path]:
    """The shared libraries that these are linked with, the loader too."""
    said = subprocess.run(["ldd", *map(str, code)], capture_output=True, text=True, check=False).stdout
    return {Path(found) for found in re.findall(r"(?:^|\s)(/\S+) \(0x", said)}


def entry(name: str, kind: bytes, target: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, target, mode
    return made


def ryuk_image() -> str:
    """The image of Ryuk's makers where it can be had, or else one of a program of ours with the same protocol."""
    with suppress(ProvisionError):
        must_have(testcontainers_config.ryuk_image, RYUK_S)
        return testcontainers_config.ryuk_image
    if not shutil.which("go"):
        pytest.skip(f"there is neither {testcontainers_config.ryuk_image} nor Go to build a program in its place")
    recipe = Path(__file__).parent / "ryuk_image"
    with tempfile.TemporaryDirectory() as context:
        build = ["go", "build", "-o", f"{context}/ryuk", str(recipe / "main.go")]
        subprocess.run(build, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        shutil.copy(recipe / "Dockerfile", context)
        with DockerImage(context, tag="fencepost-test-ryuk", clean_up=False) as image:
            return str(image)


def left(engine: Any, *owners: ProcessOwner) -> list[str]:
    """The containers, networks and volumes of these owners."""
    return [thing for owner in owners for thing in left_of(engine, owner.token)]


def left_of(engine: Any, token: str) -> list[str]:
    """Those of an owner."""
    label = {"label": f"{OWNER}={token}"}
    api = engine.api
    volumes = api.volumes(filters=label)["Volumes"] or ()
    things = [*api.containers(all=True, filters=label), *api.networks(filters=label), *volumes]
    return sorted(str(thing.get("Names") or thing.get("Name")) for thing in things)
