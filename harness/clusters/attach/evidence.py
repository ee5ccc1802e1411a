"""Evidence from brokers of an attached cluster: only one group's partition of ``__consumer_offsets`` can be read.

Its batches are fetched as brokers store them, written into a file, and decoded by Kafka's tool like a local segment.
If the brokers are containers of this machine's engine, that shows their output and the metadata log, too.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.attach.clock_watch import ClockWatch
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.kafka import provision
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.clusters.kafka.node_files import dumped
from fencepost.errors import FencepostError, NotAuthorized, NotRead, NotShown
from fencepost.model import TopicPartition
from fencepost.model.clock_readings import ClockReadings
from fencepost.processes.owner import ProcessOwner

_HEAD, _HEAD_BYTES = struct.Struct(">qi"), 12  # of a batch: its first offset, and the number of bytes that follow
_LAST, _COUNT = (23, struct.Struct(">i")), (57, struct.Struct(">i"))  # the last record's distance; number of records


class ForeignEvidence:
    """Satisfies ``BrokerEvidence``, as long as the owner is open."""

    def __init__(
        self, owner: ProcessOwner, admin: ObserverAdmin, partition: int, hidden: str, watch: ClockWatch | None = None
    ) -> None:
        """
        Args:
            partition: the group's. hidden: why it cannot be read; empty: it can.
            watch: reads the clocks of the brokers; None: they have this machine's clock.
        """
        self._owner, self._admin, self._watch = owner, admin, watch
        self._place = TopicPartition(OFFSETS_TOPIC, partition)
        self._why, self._since = hidden, -1
        self._failed: Exception | None = None

    def begin(self, progress: ProgressCallback) -> None:
        """Store the end of the partition before the group exists, and get the tool that decodes it."""
        if self._why:
            return
        try:
            provision.kafka(progress)
            self._since = self._admin.end_offsets(OFFSETS_TOPIC)[self._place.partition]
        except (FencepostError, KeyError) as error:
            self._failed = error

    def request_log(self, broker: int) -> Iterator[str]:
        """Raises NotShown."""
        raise NotShown("the request log of an attached cluster's brokers cannot be read by a client")

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """Raises NotShown."""
        raise NotShown("the logs of an attached cluster's brokers cannot be read by a client")

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """The output lines of Kafka's dump tool for the group's partition, from the beginning of the run on.

        Raises:
            NotShown: it is another partition, brokers do not allow reading it, or it was compacted meanwhile.
            NotRead: reading it failed.
        """
        if TopicPartition(topic, partition) != self._place:
            raise NotShown(f"{topic} of an attached cluster cannot be read by a client")
        if self._why:
            raise NotShown(f"{self._place} was not read: {self._why}")
        if self._failed:
            raise _unread(f"{self._place} was not read", self._failed)
        with tempfile.TemporaryDirectory(prefix="fetched-", dir=self._owner.directory) as folder:
            segment = Path(folder) / f"{self._since:020}.log"
            try:
                with segment.open("wb") as file:
                    file.writelines(self._batches())
            except NotShown:
                raise
            except FencepostError as error:
                raise _unread(f"{self._place} could not be read", error) from error
            yield from self.decoded(topic, [segment])

    def clocks(self) -> ClockReadings | None:
        """See ``BrokerEvidence``. Ends the readings: what follows is dated by them."""
        return self._watch.readings() if self._watch else None

    def decoded(self, topic: str, segments: Sequence[Path]) -> Iterator[str]:
        """The output lines of Kafka's dump tool for copies of segments of a topic.

        Raises:
            ProvisionError: the tool is missing, and cannot be fetched.
            ClusterError: it failed; shows its output.
        """
        jvm = KafkaJvm(provision.java().path, tuple(provision.kafka(quiet)))
        yield from dumped(self._owner.spawn, self._owner.directory, jvm, topic, segments)

    def collect_logs(self, into: Path) -> None:
        """Not available: the logs belong to the cluster's owner."""

    def _batches(self) -> Iterator[bytes]:
        """All batches since the beginning.

        Raises:
            NotShown: records between them are missing.
        """
        at, end = self._since, self._admin.end_offsets(OFFSETS_TOPIC)[self._place.partition]
        while at < end:
            found = self._admin.batches(self._place, at)
            for batch in whole_batches(found):
                first, _ = _HEAD.unpack_from(batch)
                last, count = first + _number(batch, *_LAST), _number(batch, *_COUNT)
                if first > at or count != last - first + 1:
                    raise NotShown(f"{self._place} was compacted during the run: records are missing at {at}")
                if last >= at:
                    at = last + 1
                    yield batch


def _unread(what: str, why: Exception) -> NotShown:
    """What to raise if the partition cannot be read: brokers may have refused the right, else it is a failure here."""
    kind = NotShown if isinstance(why, NotAuthorized) else NotRead
    return kind(f"{what}: {str(why) or type(why).__name__}")


def whole_batches(found: bytes) -> Iterator[bytes]:
    """The complete batches; the last one of an answer may be incomplete."""
    at = 0
    while at + _HEAD_BYTES <= len(found):
        _, length = _HEAD.unpack_from(found, at)
        end = at + _HEAD_BYTES + length
        if end > len(found):
            return
        yield found[at:end]
        at = end


def _number(batch: bytes, at: int, form: struct.Struct) -> int:
    return int(form.unpack_from(batch, at)[0])
