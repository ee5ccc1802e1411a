"""Files of the nodes of a cluster that we started: request logs, decoded partitions, text logs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.errors import ClusterError, FencepostError
from fencepost.interfaces.process import Spawn
from fencepost.processes.owner import wait_ended

REQUEST_LOG = "kafka-request.log"
DECODERS = {"__consumer_offsets": "--offsets-decoder", "__cluster_metadata": "--cluster-metadata-decoder"}
DUMP_S = 120.0


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

    def request_log(self, broker: int) -> Iterator[str]:
        """The lines of this broker's request log, over all restarts, in order."""
        path = self._homes[broker] / REQUEST_LOG
        if path.exists():
            yield from lines(path)

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """The complete lines of this broker's text log from byte ``start`` on, over all restarts, in order."""
        home = self._homes[broker]
        try:
            return complete_lines(home / f"{home.name}.log", start)
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
        for home in (*self._homes.values(), self._controller):
            for log in (*home.glob("*.log"), *home.parent.glob("*.log")):
                name = f"{home.name}-{log.name}" if log.name == REQUEST_LOG else log.name
                shutil.copy(log, into / name)

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


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file."""
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from (line.rstrip("\n") for line in file)


def complete_lines(path: Path, start: int = 0) -> tuple[list[str], int]:
    """The complete lines of a file that grows, from byte ``start`` on, and the position of the next line."""
    with path.open("rb") as file:
        file.seek(start)
        text, _, _ = file.read().rpartition(b"\n")
    return text.decode(errors="replace").split("\n"), start + len(text) + bool(text)
