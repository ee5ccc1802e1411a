"""The parts that a run needs and whether this machine has them, with remedies: the command ``fencepost doctor``."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from fencepost.clusters import cache, environments, toxiproxy
from fencepost.clusters.backends import Backend
from fencepost.clusters.docker import engine as docker_engine
from fencepost.clusters.docker import images
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError
from fencepost.model.settings import KAFKAS
from fencepost.network import packets, redirects

RUN_BYTES = 2_000_000_000
MEMORY_BYTES = 1_500_000_000
TRIAL_S = 5.0
# Runs a command in a new network namespace, in which this user is root. Many systems allow that.
ALONE = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"')
LOOPBACK = "127.77.254.254"
EVERY_RUN = ("Python", "Java", "signals", "disk", "memory")  # each back-end adds its own


class Readiness(StrEnum):
    """``later``: the first run creates or fetches it; ``optional``: missing, but not needed by a local run."""

    OK = "ok"
    LATER = "later"
    OPTIONAL = "optional"
    MISSING = "missing"


@dataclass(frozen=True)
class Prerequisite:
    """A part that a run needs: its state, and a text with what was found, or the remedy."""

    name: str
    state: Readiness
    text: str

    def line(self) -> str:
        """The part as one line."""
        return f"{self.state:<8}  {self.name:<10}  {self.text}"


def examine(runs: Path = Path("runs")) -> tuple[Prerequisite, ...]:
    """Check everything; ``runs`` is the folder for run folders. Fetches nothing and changes nothing."""
    return tuple(_look(name, look) for name, look in _looks(runs).items())


def missing_parts(backend: Backend, runs: Path = Path("runs")) -> tuple[Prerequisite, ...]:
    """The parts that a run with this back-end needs and that are missing now."""
    looks = _looks(runs)
    parts = (_look(name, looks[name]) for name in (*EVERY_RUN, *backend.parts))
    return tuple(part for part in parts if part.state is not Readiness.OK)


def beyond_reach(parts: Iterable[Prerequisite]) -> tuple[Prerequisite, ...]:
    """The missing parts that the first run cannot fetch or create itself."""
    return tuple(part for part in parts if part.state is not Readiness.LATER)


def require(backend: Backend, runs: Path = Path("runs")) -> None:
    """Check that a run with this back-end is possible here.

    Raises:
        ProvisionError: lists everything that is missing, with the remedies.
    """
    if missing := beyond_reach(missing_parts(backend, runs)):
        sentences = "; ".join(f"{part.name}: {part.text}" for part in missing)
        raise ProvisionError(f"a run with the back-end {backend} is not possible on this machine. {sentences}")


def _looks(runs: Path) -> dict[str, Callable[[], tuple[Readiness, str]]]:
    return {
        "Python": _python,
        "Java": _java,
        "Kafka": _kafka,
        "Toxiproxy": _toxiproxy,
        "ss": _ss,
        "loopback": _loopback,
        "signals": _signals,
        "disk": lambda: _disk(runs),
        "memory": _memory,
        "packets": _packets,
        "redirects": _redirects,
        "netem": _netem,
        "members": _members,
        "Spark": _spark,
        "Docker": _docker,
    }


def _look(name: str, look: Callable[[], tuple[Readiness, str]]) -> Prerequisite:
    try:
        return Prerequisite(name, *look())
    except (ProvisionError, OSError, subprocess.SubprocessError) as error:
        return Prerequisite(name, Readiness.MISSING, str(error))


def _python() -> tuple[Readiness, str]:
    return Readiness.OK, f"{platform.python_version()} at {sys.executable}"  # an older one cannot install Fencepost


def _java() -> tuple[Readiness, str]:
    java = provision.java()
    return Readiness.OK, f"{java.description.partition(' / ')[0]} at {java.path}"


def _kafka() -> tuple[Readiness, str]:
    if os.environ.get("KAFKA_HOME"):
        return Readiness.OK, f"{provision.kafka_version(provision.kafka())} in KAFKA_HOME"
    home = cache.directory() / f"kafka-{KAFKAS[0]}"
    if cache.intact(home):
        return Readiness.OK, f"{KAFKAS[0]} in {home}"
    return Readiness.LATER, f"the first run fetches Kafka {KAFKAS[0]} (54 MB) into {cache.directory()}"


def _toxiproxy() -> tuple[Readiness, str]:
    found = toxiproxy.there()
    return (Readiness.OK, str(found)) if found else (Readiness.LATER, f"the first run {toxiproxy.way()}")


def _ss() -> tuple[Readiness, str]:
    found = shutil.which("ss")
    return (
        (Readiness.OK, found)
        if found
        else (Readiness.MISSING, "install ss (Debian: iproute2), the witness of cut links")
    )


def _loopback() -> tuple[Readiness, str]:
    if platform.system() != "Linux":
        return Readiness.MISSING, "the local back-end needs Linux, where all of 127.0.0.0/8 is this machine"
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, 0))
        except OSError as error:
            return Readiness.MISSING, f"{LOOPBACK} cannot be used ({error.strerror}): give lo the network 127.0.0.0/8"
    return Readiness.OK, f"{LOOPBACK} can be listened on"


def _signals() -> tuple[Readiness, str]:
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        child.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
    finally:
        child.kill()
        child.communicate()
    if not stopped:
        return Readiness.MISSING, "a child process could not be stopped by a signal: does a sandbox prevent it?"
    return Readiness.OK, "processes can be stopped and killed"


def _disk(runs: Path) -> tuple[Readiness, str]:
    for folder in (runs.absolute(), Path(tempfile.gettempdir())):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free
        if not os.access(there, os.W_OK):
            return Readiness.MISSING, f"{there} cannot be written: choose another folder with --runs (or TMPDIR)"
        if free < RUN_BYTES:
            return Readiness.MISSING, (
                f"{there} has {free / 1e9:.1f} GB free, but a run needs {RUN_BYTES / 1e9:g} GB: "
                "free some, or choose another disk with --runs (or TMPDIR)"
            )
    return Readiness.OK, f"{free / 1e9:.0f} GB free"


def _memory() -> tuple[Readiness, str]:
    free = psutil.virtual_memory().available
    if free < MEMORY_BYTES:
        return Readiness.MISSING, (
            f"{free / 1e9:.1f} GB available, but a cluster and Spark need {MEMORY_BYTES / 1e9:g} GB: "
            "end other programs, or use --cluster attach:HOST:PORT"
        )
    return Readiness.OK, f"{free / 1e9:.1f} GB available"


def _packets() -> tuple[Readiness, str]:
    if not (problem := packets.missing_reason()):
        return Readiness.OK, "iptables rules can drop packets"
    prefix = "; if everything is fetched already, use this prefix for the command: " + shlex.join(ALONE)
    return Readiness.OPTIONAL, f"faults that lose packets are not possible: {problem}{prefix if alone() else ''}"


def _redirects() -> tuple[Readiness, str]:
    if problem := redirects.missing_reason():
        return Readiness.OPTIONAL, f"faults between members and an attached cluster are not possible: {problem}"
    return Readiness.OK, "members' connections to an attached cluster can be redirected to proxies"


def alone() -> bool:
    """Whether packets can be lost in a new network namespace (``ALONE``), which suffices for a local run."""
    trial = "import sys; from fencepost.network import packets; sys.exit(bool(packets.missing_reason()))"
    if shutil.which("unshare") is None:
        return False
    argv = [*ALONE, sys.executable, "-c", trial]
    return not subprocess.run(argv, capture_output=True, timeout=TRIAL_S * 2, check=False).returncode


def _netem() -> tuple[Readiness, str]:
    """Tried in a new network namespace, which ends with the trial."""
    trial = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    if shutil.which("tc") is None:
        return Readiness.OPTIONAL, "no tc (Debian: iproute2); no fault needs it yet"
    if subprocess.run(trial, capture_output=True, timeout=TRIAL_S, check=False).returncode:
        return Readiness.OPTIONAL, "the kernel has no sch_netem, or this user may not use it; no fault needs it yet"
    return Readiness.OK, "the kernel can delay packets; no fault needs it yet"


def _members() -> tuple[Readiness, str]:
    pythons = sorted(environments.pythons(), key=environments.numbers)
    made = len(environments.made())
    found = f"the group's python may be {', '.join(pythons)}" if pythons else "no Python for environments of members"
    return Readiness.OK, f"{found}; {made} environments in {cache.directory()}"


def _spark() -> tuple[Readiness, str]:
    archives = sorted((cache.directory() / "spark-classes").glob("*.jsa"))
    if archives:
        return Readiness.OK, f"starts fast from {archives[-1]}"
    return Readiness.LATER, "the first verdict takes some seconds longer and creates a class archive for later ones"


def _docker() -> tuple[Readiness, str]:
    try:
        engine = f"engine {docker_engine.engine()}"
        if not images.any_there():
            return Readiness.LATER, f"{engine}; the first run with --cluster docker builds images"
        return Readiness.OK, f"{engine}; --cluster docker runs everything in containers"
    except ProvisionError as error:
        return Readiness.OPTIONAL, str(error)
