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

from fencepost.clusters import cache, docker, docker_images, environments, provision, toxiproxy
from fencepost.clusters.backends import Backend
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


class State(StrEnum):
    """``later``: the first run creates or fetches it; ``optional``: missing, but not needed by a local run."""

    OK = "ok"
    LATER = "later"
    OPTIONAL = "optional"
    MISSING = "missing"


@dataclass(frozen=True)
class Part:
    """A part that a run needs: its state, and a text with what was found, or the remedy."""

    name: str
    state: State
    text: str

    def line(self) -> str:
        """The part as one line."""
        return f"{self.state:<8}  {self.name:<10}  {self.text}"


def examine(runs: Path = Path("runs")) -> tuple[Part, ...]:
    """Check everything; ``runs`` is the folder for run folders. Fetches nothing and changes nothing."""
    return tuple(_look(name, look) for name, look in _looks(runs).items())


def lacks(backend: Backend, runs: Path = Path("runs")) -> tuple[Part, ...]:
    """The parts that a run with this back-end needs and that are missing now."""
    looks = _looks(runs)
    parts = (_look(name, looks[name]) for name in (*EVERY_RUN, *backend.parts))
    return tuple(part for part in parts if part.state is not State.OK)


def beyond_reach(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The missing parts that the first run cannot fetch or create itself."""
    return tuple(part for part in parts if part.state is not State.LATER)


def require(backend: Backend, runs: Path = Path("runs")) -> None:
    """Check that a run with this back-end is possible here.

    Raises:
        ProvisionError: lists everything that is missing, with the remedies.
    """
    if missing := beyond_reach(lacks(backend, runs)):
        sentences = "; ".join(f"{part.name}: {part.text}" for part in missing)
        raise ProvisionError(f"a run with the back-end {backend} is not possible on this machine. {sentences}")


def _looks(runs: Path) -> dict[str, Callable[[], tuple[State, str]]]:
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


def _look(name: str, look: Callable[[], tuple[State, str]]) -> Part:
    try:
        return Part(name, *look())
    except (ProvisionError, OSError, subprocess.SubprocessError) as error:
        return Part(name, State.MISSING, str(error))


def _python() -> tuple[State, str]:
    return State.OK, f"{platform.python_version()} at {sys.executable}"  # an older one cannot install Fencepost


def _java() -> tuple[State, str]:
    java = provision.java()
    return State.OK, f"{java.description.partition(' / ')[0]} at {java.path}"


def _kafka() -> tuple[State, str]:
    if os.environ.get("KAFKA_HOME"):
        return State.OK, f"{provision.kafka_version(provision.kafka())} in KAFKA_HOME"
    home = cache.directory() / f"kafka-{KAFKAS[0]}"
    if cache.intact(home):
        return State.OK, f"{KAFKAS[0]} in {home}"
    return State.LATER, f"the first run fetches Kafka {KAFKAS[0]} (54 MB) into {cache.directory()}"


def _toxiproxy() -> tuple[State, str]:
    found = toxiproxy.there()
    return (State.OK, str(found)) if found else (State.LATER, f"the first run {toxiproxy.way()}")


def _ss() -> tuple[State, str]:
    found = shutil.which("ss")
    return (State.OK, found) if found else (State.MISSING, "install ss (Debian: iproute2), the witness of cut links")


def _loopback() -> tuple[State, str]:
    if platform.system() != "Linux":
        return State.MISSING, "the local back-end needs Linux, where all of 127.0.0.0/8 is this machine"
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, 0))
        except OSError as error:
            return State.MISSING, f"{LOOPBACK} cannot be used ({error.strerror}): give lo the network 127.0.0.0/8"
    return State.OK, f"{LOOPBACK} can be listened on"


def _signals() -> tuple[State, str]:
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        child.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
    finally:
        child.kill()
        child.communicate()
    if not stopped:
        return State.MISSING, "a child process could not be stopped by a signal: does a sandbox prevent it?"
    return State.OK, "processes can be stopped and killed"


def _disk(runs: Path) -> tuple[State, str]:
    for folder in (runs.absolute(), Path(tempfile.gettempdir())):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free
        if not os.access(there, os.W_OK):
            return State.MISSING, f"{there} cannot be written: choose another folder with --runs (or TMPDIR)"
        if free < RUN_BYTES:
            return State.MISSING, (
                f"{there} has {free / 1e9:.1f} GB free, but a run needs {RUN_BYTES / 1e9:g} GB: "
                "free some, or choose another disk with --runs (or TMPDIR)"
            )
    return State.OK, f"{free / 1e9:.0f} GB free"


def _memory() -> tuple[State, str]:
    free = psutil.virtual_memory().available
    if free < MEMORY_BYTES:
        return State.MISSING, (
            f"{free / 1e9:.1f} GB available, but a cluster and Spark need {MEMORY_BYTES / 1e9:g} GB: "
            "end other programs, or use --cluster attach:HOST:PORT"
        )
    return State.OK, f"{free / 1e9:.1f} GB available"


def _packets() -> tuple[State, str]:
    if not (problem := packets.lacking()):
        return State.OK, "iptables rules can drop packets"
    prefix = "; if everything is fetched already, use this prefix for the command: " + shlex.join(ALONE)
    return State.OPTIONAL, f"faults that lose packets are not possible: {problem}{prefix if alone() else ''}"


def _redirects() -> tuple[State, str]:
    if problem := redirects.lacking():
        return State.OPTIONAL, f"packets to an attached cluster cannot be lost: {problem}"
    return State.OK, "members' connections to an attached cluster can be redirected to proxies"


def alone() -> bool:
    """Whether packets can be lost in a new network namespace (``ALONE``), which suffices for a local run."""
    trial = "import sys; from fencepost.network import packets; sys.exit(bool(packets.lacking()))"
    if shutil.which("unshare") is None:
        return False
    argv = [*ALONE, sys.executable, "-c", trial]
    return not subprocess.run(argv, capture_output=True, timeout=TRIAL_S * 2, check=False).returncode


def _netem() -> tuple[State, str]:
    """Tried in a new network namespace, which ends with the trial."""
    trial = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    if shutil.which("tc") is None:
        return State.OPTIONAL, "no tc (Debian: iproute2); no fault needs it yet"
    if subprocess.run(trial, capture_output=True, timeout=TRIAL_S, check=False).returncode:
        return State.OPTIONAL, "the kernel has no sch_netem, or this user may not use it; no fault needs it yet"
    return State.OK, "the kernel can delay packets; no fault needs it yet"


def _members() -> tuple[State, str]:
    pythons = sorted(environments.pythons(), key=environments.numbers)
    made = len(environments.made())
    found = f"the group's python may be {', '.join(pythons)}" if pythons else "no Python for environments of members"
    return State.OK, f"{found}; {made} environments in {cache.directory()}"


def _spark() -> tuple[State, str]:
    archives = sorted((cache.directory() / "spark-classes").glob("*.jsa"))
    if archives:
        return State.OK, f"starts fast from {archives[-1]}"
    return State.LATER, "the first verdict takes some seconds longer and creates a class archive for later ones"


def _docker() -> tuple[State, str]:
    try:
        engine = f"engine {docker.engine()}"
        if not docker_images.any_there():
            return State.LATER, f"{engine}; the first run with --cluster docker builds images"
        return State.OK, f"{engine}; --cluster docker runs everything in containers"
    except ProvisionError as error:
        return State.OPTIONAL, str(error)
