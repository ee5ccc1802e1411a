"""Kafka nodes as JVM processes: how they are started, and the handle that faults get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from zipfile import ZipFile

from fencepost.clock import eventually
from fencepost.errors import ClusterError
from fencepost.interfaces.process import Process, Spawn
from fencepost.processes.owner import send, wait_ended

# C1 only and the serial collector: the shortest start and the smallest footprint for a short-lived broker.
FLAGS = ("-Xms64M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
SERVING = b"Kafka Server started"
SERVING_S = 60.0
LAST_LINES = 12


@dataclass(frozen=True)
class KafkaJvm:
    """How to run a class of Kafka: the Java, the class path, and the class archive if there is one."""

    java: Path
    jars: tuple[Path, ...]
    archive: Path | None = None

    @cached_property
    def dump_tool(self) -> str:
        """The class that decodes segments: in Kafka's core or, in later releases, in its tools."""
        core, entry = "kafka.tools.DumpLogSegments", "kafka/tools/DumpLogSegments.class"
        cores = [jar for jar in self.jars if jar.name.startswith("kafka_2.")]
        return core if any(entry in ZipFile(jar).namelist() for jar in cores) else f"org.apache.{core}"

    def command(self, *arguments: str | Path, flags: Sequence[str] = (), heap: str = "256M") -> list[str]:
        """The command line for a main class and its arguments."""
        archive = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive else []
        path = ":".join(map(str, self.jars))
        return [str(self.java), f"-Xmx{heap}", *FLAGS, *archive, *flags, "-cp", path, *map(str, arguments)]

    @property
    def consumer(self) -> tuple[str, ...]:
        """The command of Kafka's VerifiableConsumer, without its arguments."""
        return tuple(self.command("org.apache.kafka.tools.VerifiableConsumer", heap="128M"))

    def node(self, home: Path, *, flags: Sequence[str] = (), heap: str = "256M") -> list[str]:
        """The command line of a broker or controller whose folder is ``home``."""
        log4j = resources.files("fencepost.clusters.kafka").joinpath("log4j2.yaml")
        system = (f"-Dlog4j2.configurationFile={log4j}", f"-Dkafka.logs.dir={home}")
        return self.command(*system, "kafka.Kafka", home / "server.properties", flags=flags, heap=heap)


@dataclass
class JvmNode:
    """One Kafka node over all its restarts; its data stays when it ends. Satisfies ``Node``."""

    name: str
    home: Path
    argv: Sequence[str]
    spawn: Spawn
    _process: Process | None = field(default=None, repr=False)
    _life_begins: int = 0

    @property
    def log(self) -> Path:
        """Stdout and stderr of all its processes."""
        return self.home / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """Process id of the present process, None when there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def begin(self) -> None:
        """Start a process and return at once. No-op when it runs."""
        if self.pid is None:
            self._life_begins = self.log.stat().st_size if self.log.exists() else 0
            self._process = self.spawn(self.argv, log=self.log, cwd=self.home)

    def start(self) -> None:
        """Start a process and return once it serves. No-op when it runs.

        Raises:
            ClusterError: it ended instead; the message shows the end of its log.
            WaitTimeout: it does not serve in time.
        """
        if self.pid is None:
            self.begin()
            self.await_serving()

    def await_serving(self, within_s: float = SERVING_S, others: Callable[[], None] = lambda: None) -> None:
        """Wait until the present process serves; ``others`` is called meanwhile and may raise."""

        def serves() -> bool:
            others()
            if self.pid is None:
                raise ClusterError(f"{self.name} ended before it served. The end of its log: {self.last_lines()}")
            return SERVING in self._log_of_this_life()

        eventually(
            serves, within_s, f"{self.name} to serve", state=self.last_lines, hint=f"Its whole log is {self.log}"
        )

    def signal(self, signal: int) -> None:
        """Send a signal to the present process; no-op when there is none."""
        if self._process is not None:
            send(self._process, signal)

    def wait_ended(self, within_s: float) -> int:
        """Wait for the present process to end; its exit code (negative: the number of the signal).

        Raises:
            WaitTimeout: it still runs.
            ClusterError: it was never started.
        """
        if self._process is None:
            raise ClusterError(f"{self.name} was never started, so it cannot end")
        return wait_ended(self._process, within_s)

    def last_lines(self) -> str:
        """The last lines of its log, for messages."""
        lines = self._log_of_this_life().decode(errors="replace").splitlines()
        return "\n  " + "\n  ".join(lines[-LAST_LINES:]) if lines else "its log is empty"

    def _log_of_this_life(self) -> bytes:
        if not self.log.exists():
            return b""
        with self.log.open("rb") as file:
            file.seek(self._life_begins)
            return file.read()
