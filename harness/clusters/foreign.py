"""What brokers of others let a client read: of all evidence, the partition of ``__consumer_offsets`` of one group.

It is fetched as the batches that brokers keep, put into a file, and decoded by Kafka's own tool like a segment of ours.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fencepost.clusters import provision
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.cache import Progress
from fencepost.clusters.files import dumped
from fencepost.clusters.jvm import Jvm
from fencepost.errors import FencepostError, NotShown
from fencepost.model import TopicPartition
from fencepost.processes.owner import Owner

_HEAD, _HEAD_BYTES = struct.Struct(">qi"), 12  # of a batch: its first offset, and how many bytes follow
_LAST, _COUNT = (23, struct.Struct(">i")), (57, struct.Struct(">i"))  # the last one's distance; how many records


class ForeignEvidence:
    """Satisfies ``BrokerEvidence``, as long as the owner is open."""

    def __init__(self, owner: Owner, admin: ObserverAdmin, partition: int, doubt: str) -> None:
        """``partition`` is the group's; ``doubt``: why times in it mean nothing here; empty: they do."""
        self._owner, self._admin = owner, admin
        self._place = TopicPartition(OFFSETS_TOPIC, partition)
        self._why, self._since, self._jvm = doubt, -1, Jvm(Path(), ())

    def begin(self, progress: Progress) -> None:
        """Remember where the partition ends before the group is there, and get what decodes it."""
        if self._why:
            return
        try:
            self._jvm = Jvm(provision.java().path, tuple(provision.kafka(progress)))
            self._since = self._admin.end_offsets(OFFSETS_TOPIC)[self._place.partition]
        except (FencepostError, KeyError) as error:
            self._why = str(error) or type(error).__name__

    def request_log(self, broker: int) -> Iterator[str]:
        """Raises NotShown."""
        raise NotShown("the request log of an attached cluster's brokers cannot be read by a client")

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """Raises NotShown."""
        raise NotShown("the logs of an attached cluster's brokers cannot be read by a client")

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """What Kafka's dump tool prints of the group's partition, from the begin of the run on.

        Raises:
            NotShown: it is another partition, brokers do not let it be read, or it was compacted meanwhile.
        """
        if TopicPartition(topic, partition) != self._place:
            raise NotShown(f"{topic} of an attached cluster cannot be read by a client")
        if self._why:
            raise NotShown(f"{self._place} was not read: {self._why}")
        with tempfile.TemporaryDirectory(prefix="fetched-", dir=self._owner.directory) as folder:
            segment = Path(folder) / f"{self._since:020}.log"
            try:
                with segment.open("wb") as file:
                    file.writelines(self._batches())
            except FencepostError as error:
                raise NotShown(f"{self._place} could not be read: {error}") from error
            yield from dumped(self._owner.spawn, self._owner.directory, self._jvm, topic, [segment])

    def collect_logs(self, into: Path) -> None:
        """Their logs are theirs."""

    def _batches(self) -> Iterator[bytes]:
        """All batches since the begin.

        Raises:
            NotShown: records are missing between them.
        """
        at, end = self._since, self._admin.end_offsets(OFFSETS_TOPIC)[self._place.partition]
        while at < end:
            found = self._admin.batches(self._place, at)
            for batch in whole_batches(found):
                first, _ = _HEAD.unpack_from(batch)
                last, count = first + _number(batch, *_LAST), _number(batch, *_COUNT)
                if first > at or count != last - first + 1:
                    raise NotShown(f"{self._place} was compacted while the run went on: records are missing at {at}")
                if last >= at:
                    at = last + 1
                    yield batch


def whole_batches(found: bytes) -> Iterator[bytes]:
    """The batches that are there to their end; the last one of an answer may not be."""
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
