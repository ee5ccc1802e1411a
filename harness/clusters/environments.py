"""Environments of members: the harness's own Python, or a virtual environment with another Python or client release.

Environments are created once and kept in the cache: a Python of this machine, into which its pip installs the release
with its dependencies, wheels only. Fencepost is not installed there: it is found by PYTHONPATH.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache as once
from importlib import metadata
from pathlib import Path

from fencepost.clusters import cache
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.kafka import provision
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.errors import ProvisionError
from fencepost.group.incarnation import member_side
from fencepost.interfaces.process import Environment, Interpreter
from fencepost.model.clients import BLACK_BOX, LINES, VERIFIABLE, Client
from fencepost.model.settings import KAFKAS, OLDEST_PYTHON

NAME = re.compile(r"python3\.\d+")
TRIAL_S = 20.0
PRINT_VERSION = "import ensurepip, sys, venv; print('%d.%d.%d' % sys.version_info[:3])"
WHEELS = ("--no-input", "--disable-pip-version-check", "--only-binary=:all:")


def interpreter(environment: Environment, progress: ProgressCallback = quiet) -> Interpreter:
    """The interpreter of members: for another Python or release an environment, created unless cached (some seconds).

    Raises:
        ProvisionError: no such Python is on this machine, no such release can be installed in it or works there, or the
            client is not installed with Fencepost and no release is named.
    """
    if environment.client.name == LINES:
        return Interpreter(lines=True)
    if environment.client.name == BLACK_BOX:
        return Interpreter(silent=True)
    if environment.client.name == VERIFIABLE:
        return _verifiable(environment.client, progress)
    client = environment.client if environment.client.version else _installed(environment.client)
    if not environment.own:
        return Interpreter()
    version, python = (
        find(environment.python) if environment.python else (_version(Path(sys.executable)), Path(sys.executable))
    )

    def make(into: Path) -> None:
        progress(f"creating an environment with {client} on Python {version} (once)")
        _make(python, client, into)

    home = cache.install(f"member-{client.name}-{client.version}-python{version}", make)
    return Interpreter(str(home / "bin" / "python"))


def _verifiable(client: Client, progress: ProgressCallback) -> Interpreter:
    """The interpreter of Kafka's own client; ``programs`` adds the arguments for settings and protocol."""
    if client.version not in ("", *KAFKAS):
        raise ProvisionError(f"there is no {client}; its releases are Kafka's: {', '.join(KAFKAS)}")
    jvm = KafkaJvm(provision.java().path, tuple(provision.kafka(progress, client.version)))
    return Interpreter(command=jvm.consumer, lines=True)


def interpreters(environments: Sequence[Environment], progress: ProgressCallback = quiet) -> list[Interpreter]:
    """The interpreter of each member; equal environments share one. Raises ProvisionError."""
    made = {one: interpreter(one, progress) for one in dict.fromkeys(environments)}
    return [made[one] for one in environments]


def find(version: str) -> tuple[str, Path]:
    """The full version and path of a Python: on the PATH, or else the newest of pyenv's.

    Raises:
        ProvisionError: there is none; lists the places that were searched, and the Pythons found.
    """
    found = pythons()
    for full, path in found.items():
        if f"{full}.".startswith(f"{version}."):
            return full, path
    name = f"python{'.'.join(version.split('.')[:2])}"
    raise ProvisionError(
        f"there is no Python {version} for members: neither {name} on the PATH nor one below {_pyenv()} runs and has "
        f"venv (Debian: {name}-venv). Found: {', '.join(found) or 'none'}. Install it, or give the group's python "
        "another version"
    )


@once
def pythons() -> dict[str, Path]:
    """Full version -> path of each Python that members can run on, in order of preference."""
    found: dict[str, Path] = {}
    for path in _candidates():
        version = _version(path)
        if version and int(version.split(".")[1]) >= OLDEST_PYTHON:
            found.setdefault(version, path)
    return found


def made() -> list[str]:
    """The environments in the cache."""
    homes = sorted(cache.directory().glob("member-*-python*"))
    return [home.name.removeprefix("member-") for home in homes if cache.intact(home)]


def numbers(version: str) -> tuple[int, ...]:
    """``3.9.18`` -> (3, 9, 18), for comparisons."""
    return tuple(map(int, re.findall(r"\d+", version)))


def _candidates() -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += sorted(_pyenv().glob("3.*/bin"), key=lambda path: numbers(path.parent.name), reverse=True)
    for folder in folders:
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"


def _version(python: Path) -> str:
    """The full version of a Python; empty: it cannot create environments, like a pyenv shim without a version."""
    try:
        argv = [str(python), "-I", "-c", PRINT_VERSION]
        return subprocess.run(argv, capture_output=True, text=True, timeout=TRIAL_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _installed(client: Client) -> Client:
    try:
        return replace(client, version=metadata.version(client.name))
    except metadata.PackageNotFoundError as error:
        raise ProvisionError(
            f"{client} is not installed with Fencepost: name a release as the group's client ({client}==...), which "
            "gets a separate environment"
        ) from error


def _make(python: Path, client: Client, into: Path) -> None:
    folder, pip = into.parent, into / "bin" / "pip"
    alone = {"PYTHONPATH": "", "PIP_USER": "0"}
    provision.run([str(python), "-m", "venv", str(into)], folder, alone)
    try:
        provision.run([str(pip), "install", "--quiet", *WHEELS, str(client)], folder, alone)
    except ProvisionError as error:
        raise ProvisionError(f"{client} cannot be installed: {error} {_way_out(pip, client)}") from error
    trial = f"import fencepost_member.adapters.{client.name.replace('-', '_')}"
    try:
        provision.run([str(into / "bin" / "python"), "-c", trial], folder, {"PYTHONPATH": str(member_side(folder))})
    except ProvisionError as error:
        raise ProvisionError(
            f"{client} does not work on this Python: {error} Name an older one as the group's python"
        ) from error


def _way_out(pip: Path, client: Client) -> str:
    """A sentence about the Pythons of this machine for which there is a wheel."""
    fitting = []
    for minor in dict.fromkeys(version.rpartition(".")[0] for version in pythons()):
        argv = [str(pip), "download", "--quiet", "--retries=0", *WHEELS, "--no-deps", f"--python-version={minor}"]
        with subprocess.Popen([*argv, str(client)], cwd=pip.parent, stderr=subprocess.DEVNULL) as process:
            if process.wait(TRIAL_S) == 0:
                fitting.append(minor)
    if fitting:
        return f"There are wheels for Python {', '.join(fitting)}: name one as the group's python"
    return "No Python on this machine has a wheel of it: is there a network, and such a release?"
