"""Files of the nodes of a cluster that we started: request logs, decoded partitions, text logs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path

from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.errors import ClusterError, FencepostError
from fencepost.interfaces.process import Spawn
from fencepost.processes.owner import wait_ended

REQUEST_LOG = "kafka-request.log"
DECODERS = {"__consumer_offsets": "--offsets-decoder", "__cluster_metadata": "--cluster-metadata-decoder"}
DUMP_S = 120.0
LINE_BYTES = 1 << 20  # no line is longer


class NodeFiles:
    """Reads the folders of the nodes. Satisfies ``BrokerEvidence``, as long as the owner is open.

    Args:
        spawn: starts Kafka's dump tool.
        directory: a folder for temporary files.
        jvm: how to run the tool.
        homes: the folder of each broker.
        controller: the controller's folder.
        leader: the present leader of a partition; raises or returns -1 if it is unknown.
    """

    def __init__(
        self,
        spawn: Spawn,
        directory: Path,
        jvm: KafkaJvm,
        homes: Mapping[int, Path],
        controller: Path,
        leader: Callable[[str, int], int],
    ) -> None:
        self._spawn, self._directory, self._jvm = spawn, directory, jvm
        self._homes = homes
        self._controller = controller
        self._leader = leader
        self._begins: Mapping[Path, int] = {}  # text file -> the byte at which it begins for us

    def from_now_on(self) -> NodeFiles:
        """The same, without the lines that were written into text files so far."""
        later = copy(self)
        later._begins = {log: end_of_lines(log) for log in self._texts()}
        return later

    def request_log(self, broker: int) -> Iterator[str]:
        """The lines of this broker's request log, over all restarts, in order."""
        path = self._homes[broker] / REQUEST_LOG
        if path.exists():
            yield from lines(path, self._begins.get(path, 0))

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """The complete lines of this broker's text log from byte ``start`` on, over all restarts, in order."""
        home = self._homes[broker]
        path = home / f"{home.name}.log"
        try:
            return complete_lines(path, max(start, self._begins.get(path, 0)))
        except FileNotFoundError:
            return [], start

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """The output lines of Kafka's dump tool for a partition, from the replica that has all of it.

        Raises:
            ClusterError: not a topic that the tool decodes, no replica, or the tool failed; shows its output.
        """
        if topic not in DECODERS:
            raise ClusterError(f"{topic} cannot be decoded; known are {', '.join(DECODERS)}")
        segments = self._segments(topic, partition)
        if not segments:
            raise ClusterError(f"no node has a replica of {topic}-{partition}")
        yield from dumped(self._spawn, self._directory, self._jvm, topic, segments)

    def clocks(self) -> None:
        """None: see ``BrokerEvidence``."""

    def collect_logs(self, into: Path) -> None:
        """Copy the text logs of every process of the cluster into a folder."""
        into.mkdir(parents=True, exist_ok=True)
        for log in self._texts():
            name = f"{log.parent.name}-{log.name}" if log.name == REQUEST_LOG else log.name
            with log.open("rb") as source, (into / name).open("wb") as target:
                source.seek(self._begins.get(log, 0))
                shutil.copyfileobj(source, target)

    def _texts(self) -> set[Path]:
        """The text logs of all nodes, and those beside their folders."""
        homes = (*self._homes.values(), self._controller)
        return {log for home in homes for log in (*home.glob("*.log"), *home.parent.glob("*.log"))}

    def _segments(self, topic: str, partition: int) -> list[Path]:
        if topic == "__cluster_metadata":
            return _segments(self._controller, topic, partition)
        try:
            leader = self._leader(topic, partition)
        except FencepostError:
            leader = -1
        if leader in self._homes:
            return _segments(self._homes[leader], topic, partition)
        # Without a leader: replicas are equal byte by byte, so the longest has the most.
        replicas = [_segments(home, topic, partition) for home in self._homes.values()]
        return max(replicas, key=lambda files: sum(file.stat().st_size for file in files), default=[])


def _segments(home: Path, topic: str, partition: int) -> list[Path]:
    return sorted((home / "data" / f"{topic}-{partition}").glob("*.log"))


def dumped(spawn: Spawn, directory: Path, jvm: KafkaJvm, topic: str, segments: Sequence[Path]) -> Iterator[str]:
    """The output lines of Kafka's dump tool for segments of a partition of a topic of ``DECODERS``.

    Raises:
        ClusterError: the tool failed; shows its output.
    """
    files = ",".join(map(str, segments))
    with tempfile.TemporaryDirectory(prefix="dump-", dir=directory) as folder:
        output = Path(folder) / "lines"
        tool = jvm.command(jvm.dump_tool, DECODERS[topic], "--files", files)
        code = wait_ended(spawn(tool, log=output), DUMP_S)
        if code:
            raise ClusterError(f"the dump of {segments[0].parent.name} failed: {output.read_text()[-500:]}")
        yield from lines(output)


def lines(path: Path, start: int = 0) -> Iterator[str]:
    """The lines of a text file from byte ``start`` on, where a line begins."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(start)
        yield from (line.rstrip("\n") for line in file)


def end_of_lines(path: Path) -> int:
    """The byte behind the last complete line of a file that grows."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LINE_BYTES))
        tail = file.read(min(size, LINE_BYTES))
    return size - len(tail) + tail.rfind(b"\n") + 1


def complete_lines(path: Path, start: int = 0) -> tuple[list[str], int]:
    """The complete lines of a file that grows, from byte ``start`` on, and the position of the next line."""
    with path.open("rb") as file:
        file.seek(start)
        text, _, _ = file.read().rpartition(b"\n")
    return text.decode(errors="replace").split("\n"), start + len(text) + bool(text)
