"""The segment file: a header, then fixed-width records with a commit byte each. Only this module defines its layout.

A record begins with the words that are stored later (each by one aligned store of eight bytes: completely or not at
all). Then follow the fields that are packed together, the outcome byte, and last the commit byte. The times of a record
show its state: ended, begun, or only delivered; the outcome byte marks the unusual ends.

Segments are in the byte order of the host. Times are nanoseconds of ``CLOCK_MONOTONIC`` unless a name says otherwise.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple, Tuple

FORMAT_VERSION = 1
MAGIC = b"FPSEGMNT"
HEADER_BYTES = 4096
COMMITTED = 0xA5
PARKED, FAILED, UNKNOWN, ABORTED = 3, 4, 5, 6  # the outcome byte; 0 is the usual end

# Words of the header that change: how many records the lane had finished when the segment began, how many it has
# finished now, and the time of the last poll, or until when a poll that waits may wait (0: no poll, or not recorded).
FINISHED_BEFORE, FINISHED, POLLED = 64, 65, 66

_HEADER = struct.Struct("=8s7I2q36s128s")


class Layout:
    """The layout of one kind of record in a segment."""

    def __init__(self, kind: int, later: str, words: str, halves: str) -> None:
        """``later`` and ``words`` name fields of 8 bytes, ``halves`` fields of 4 bytes; all are signed integers.

        ``fields`` has name, numpy's type and offset of each field, in the order of the record.
        """
        long, short = later.split() + words.split(), halves.split()
        self.kind = kind
        self.bytes = 8 * len(long) + 4 * len(short) + 8
        self.outcome_at = self.bytes - 2
        self.packed_at = 8 * len(later.split())
        self.pack_into = struct.Struct("=%dq%di7xB" % (len(words.split()), len(short))).pack_into
        self.fields: Tuple[Tuple[str, str, int], ...] = (
            *((name, "=i8", 8 * place) for place, name in enumerate(long)),
            *((name, "=i4", 8 * len(long) + 4 * place) for place, name in enumerate(short)),
            ("thread", "=i2", self.bytes - 8),  # always 0: it is in the header, and the seal fills it in
            ("outcome", "u1", self.outcome_at),
            ("commit", "u1", self.bytes - 1),
        )


DELIVERED = Layout(1, "begin_ns done_ns", "offset key seq poll ord delivered_ns", "tp writer interval position")
PRODUCED = Layout(2, "offset acked_ns", "key seq sent_ns", "tp writer")
LAYOUTS = {layout.kind: layout for layout in (DELIVERED, PRODUCED)}


class Header(NamedTuple):
    """The header of a segment. ``order`` numbers the segments of a thread from 0; ``capacity`` is in records."""

    layout: Layout
    capacity: int
    thread: int
    order: int
    monotonic_ns: int
    wall_ns: int
    boot_id: str
    actor: str


class Counts(NamedTuple):
    """Live progress of one segment: records delivered (or sent) in it, and records ended (or acknowledged) while it was
    the current one.

    ``polled_ns``: when the last poll in that time began, or until when it may wait; 0: there was none."""

    recorded: int
    finished: int
    polled_ns: int = 0


def create(path: Path, layout: Layout, actor: str, capacity: int, thread: int, order: int) -> mmap.mmap:
    """Create and map a new segment, completely allocated. It gets its name only when its header is complete.

    Raises:
        FileExistsError: the actor has been recorded before.
        OSError: the disk is full; without the allocation SIGBUS would kill the process later.
    """
    if path.exists():
        raise FileExistsError(
            errno.EEXIST, "this actor has been recorded before, a new incarnation needs a new name", str(path)
        )
    draft = path.with_suffix(".new")
    bytes_ = HEADER_BYTES + capacity * layout.bytes
    with draft.open("w+b") as file:
        try:
            _allocate(file.fileno(), bytes_)
        except OSError:
            draft.unlink()
            raise
        mapped = mmap.mmap(file.fileno(), bytes_)
    numbers = (FORMAT_VERSION, HEADER_BYTES, layout.kind, layout.bytes, capacity, thread, order)
    _HEADER.pack_into(
        mapped, 0, MAGIC, *numbers, time.monotonic_ns(), time.time_ns(), _boot_id().encode(), actor.encode()
    )
    draft.rename(path)
    return mapped


def read_header(head: bytes) -> Header:
    """The header in the first bytes of a file.

    Raises:
        ValueError: the header is invalid; the message is a part of a sentence ("it begins with ...").
    """
    if len(head) < HEADER_BYTES:
        raise ValueError("it ends after %d bytes, within its header" % len(head))
    magic, version, header_bytes, kind, record_bytes, capacity, thread, order, *rest = _HEADER.unpack_from(head)
    monotonic_ns, wall_ns, boot_id, actor = rest
    if magic != MAGIC:
        raise ValueError("it begins with %r, expected %r: this is not a segment" % (magic, MAGIC))
    if version != FORMAT_VERSION:
        raise ValueError("its format version is %d, but this release reads version %d" % (version, FORMAT_VERSION))
    if kind not in LAYOUTS or (header_bytes, record_bytes) != (HEADER_BYTES, LAYOUTS[kind].bytes):
        raise ValueError("its records are of kind %d with %d bytes, which does not exist" % (kind, record_bytes))
    texts = (field.rstrip(b"\0").decode("utf-8", "backslashreplace") for field in (boot_id, actor))
    return Header(LAYOUTS[kind], capacity, thread, order, monotonic_ns, wall_ns, *texts)


def read_counts(path: Any) -> Counts:
    """The progress of a segment, also while it is written. Add up the segments of an actor.

    Raises:
        ValueError: the file is no segment.
    """
    with Path(path).open("rb", buffering=0) as file:
        head = file.read(HEADER_BYTES)
        layout, capacity = read_header(head)[:2]
        words = memoryview(head).cast("q")
        low, high = 0, capacity  # committed records come first: binary search for the first that is not
        while low < high:
            middle = (low + high) // 2
            file.seek(HEADER_BYTES + (middle + 1) * layout.bytes - 1)
            low, high = (middle + 1, high) if file.read(1) == bytes((COMMITTED,)) else (low, middle)
        return Counts(low, max(0, words[FINISHED] - words[FINISHED_BEFORE]), words[POLLED])


def _allocate(fd: int, bytes_: int) -> None:
    """Reserve room on the disk; on a file system without that ability, by writing zeros."""
    try:
        os.posix_fallocate(fd, 0, bytes_)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        for begin in range(0, bytes_, 1 << 20):
            os.write(fd, bytes(min(1 << 20, bytes_ - begin)))


def _boot_id() -> str:
    """The id of the host's boot, within which monotonic times are comparable; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
