"""Brokers of another owner in containers of this machine's engine, which shows their output and can disturb them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fencepost.clock import eventually
from fencepost.clusters.admin import ObserverAdmin
from fencepost.clusters.attach.broker_output import BrokerOutput
from fencepost.clusters.attach.evidence import ForeignEvidence
from fencepost.clusters.attach.request_logs import RequestLogs
from fencepost.clusters.docker import engine
from fencepost.clusters.docker.engine import copy_folder, engine_errors
from fencepost.clusters.docker.processes import ContainerProcess
from fencepost.clusters.docker.published import PublishedPort
from fencepost.clusters.kafka.node_files import complete_lines
from fencepost.errors import ClusterError, FencepostError, NotRead, NotShown
from fencepost.evidence.brokers import metadata_log
from fencepost.processes.owner import ProcessOwner, send, wait_ended

START_S = 60.0
FOLDERS = ("metadata.log.dir", "log.dirs", "log.dir")  # settings that name the folder of the metadata log
SILENT = "requests of members that report nothing are identified by their proxies, which these brokers do not see"


class ContainerBroker:
    """A broker in a container of another owner, for scenarios that may disrupt brokers. Satisfies ``Node``."""

    def __init__(self, broker: int, port: PublishedPort, engine: Any, serves: Callable[[], bool]) -> None:
        """``serves``: whether the broker answers.

        Raises:
            ClusterError: the engine runs its containers on another machine.
        """
        self.name = f"broker-{broker}"
        self._serves = serves
        with engine_errors(f"finding the container of {self.name}"):
            self._container = engine.containers.get(port.container)
            self._process = ContainerProcess(self._container)

    @property
    def pid(self) -> int | None:
        """The first process of the container; None if the container has ended."""
        return self._process.pid if self._process.poll() is None else None

    def start(self) -> None:
        """Start the container again and return once the broker answers. No-op if it runs.

        Raises:
            ClusterError, WaitTimeout: it did not start, or does not answer.
        """
        if self.pid is None:
            with engine_errors(f"starting the container of {self.name}"):
                self._container.start()
                self._process = ContainerProcess(self._container)
            eventually(self._serves_again, START_S, f"{self.name} to answer after its start", every_s=0.2)

    def signal(self, signal: int) -> None:
        """Send a signal to the first process of the container; SIGSTOP and SIGCONT freeze and thaw the container."""
        send(self._process, signal)

    def wait_ended(self, within_s: float) -> int:
        """Wait for the container to end; its exit code (negative: the number of the signal).

        Raises:
            WaitTimeout: it still runs.
        """
        return wait_ended(self._process, within_s)

    def release(self) -> None:
        """Close the handle of the container's process."""
        self._process.release()

    def _serves_again(self) -> bool:
        if self.pid is None:
            with engine_errors(f"reading the output of {self.name}"):
                output = self._container.logs(tail=5).decode(errors="replace").strip()
            raise ClusterError(f"{self.name} ended again after its start. The end of its output: {output[-500:]}")
        return self._serves()


class ContainerEvidence:
    """The records of such brokers. Satisfies ``BrokerEvidence``, as long as the owner is open.

    The group's partition of ``__consumer_offsets`` is read by a client.

    Attributes:
        requests: the request logs, to be switched on.
    """

    def __init__(
        self,
        owner: ProcessOwner,
        admin: ObserverAdmin,
        foreign: ForeignEvidence,
        ports: Mapping[int, PublishedPort],
        group: str,
        silent: bool,
    ) -> None:
        """
        Args:
            foreign: what a client may read; it has begun.
            ports: the port of each broker's container.
            silent: whether members report nothing.

        Raises:
            ProvisionError: no engine answers.
            ClusterError, WaitTimeout: the engine or a broker refused, or did not answer.
        """
        self._owner, self._admin, self._foreign, self._ports = owner, admin, foreign, ports
        self._containers = {broker: port.container for broker, port in ports.items()}
        found = admin.settings(next(iter(ports)), FOLDERS)
        self._folders = [folder for name in FOLDERS for folder in found.get(name, "").split(",") if folder]
        home = Path(tempfile.mkdtemp(prefix="containers-", dir=owner.directory))
        with ExitStack() as closing:
            self._engine = closing.enter_context(engine.client())
            hidden = SILENT if silent else self._dropping()
            self._output = BrokerOutput(home, self._containers, group)
            closing.callback(self._output.close)
            self.requests = RequestLogs(admin, self._output, self._containers, group, hidden)
            closing.callback(self.requests.close)
            self._closing = closing.pop_all()

    def nodes(self) -> dict[int, ContainerBroker]:
        """The brokers, for faults.

        Raises:
            ClusterError: the engine runs its containers on another machine.
        """
        found = {}
        for broker, port in self._ports.items():
            found[broker] = ContainerBroker(broker, port, self._engine, partial(self._admin.answers, broker))
            self._closing.callback(found[broker].release)
        return found

    def request_log(self, broker: int) -> Iterator[str]:
        """See ``RequestLogs.read``."""
        return self.requests.read(broker)

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """The complete lines of the broker's output since the beginning of the run, from byte ``start`` on."""
        return complete_lines(self._output.text(broker), start)

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """The output lines of Kafka's dump tool for the metadata log, or see ``ForeignEvidence.dump``.

        Raises:
            NotShown: the containers have no metadata log, or its first records were removed after a snapshot.
            NotRead: reading it failed.
        """
        if topic != metadata_log.TOPIC:
            yield from self._foreign.dump(topic, partition)
            return
        with tempfile.TemporaryDirectory(prefix="copied-", dir=self._owner.directory) as folder:
            try:
                yield from self._foreign.decoded(topic, self._metadata_segments(Path(folder)))
            except NotShown:
                raise
            except FencepostError as error:
                raise NotRead(f"{topic} could not be read: {error}") from error

    def clocks(self) -> None:
        """None: containers of this machine's engine have its clock."""

    def collect_logs(self, into: Path) -> None:
        """Copy the output of the brokers into a folder."""
        self._output.copy(into)

    def close(self) -> None:
        """Stop following the output. May be called twice."""
        self._closing.close()

    def _dropping(self) -> str:
        """Why the engine may drop lines of the output; empty: it does not."""
        for broker, container in self._containers.items():
            with engine_errors(f"reading the log driver of broker {broker}"):
                logging = self._engine.api.inspect_container(container)["HostConfig"]["LogConfig"]
            if logging["Type"] == "none" or (logging["Config"] or {}).get("mode") == "non-blocking":
                return f"the container of broker {broker} has a log driver that drops lines"
        return ""

    def _metadata_segments(self, into: Path) -> Sequence[Path]:
        """Copies of the segments of the metadata log, which every broker has."""
        place = f"{metadata_log.TOPIC}-0"
        for folder in self._folders:
            for container in self._containers.values():
                if copy_folder(self._engine, container, f"{folder}/{place}", into, ".log"):
                    return _whole(sorted((into / place).glob("*.log")))
        raise NotShown(f"the containers have no {place} in {' or '.join(self._folders) or 'a folder that they show'}")


def _whole(segments: Sequence[Path]) -> Sequence[Path]:
    """The segments of a partition. Raises NotShown: its first records are missing."""
    if not segments or int(segments[0].stem):
        raise NotShown(f"the first records of {metadata_log.TOPIC} were removed: only a snapshot has them")
    return segments
