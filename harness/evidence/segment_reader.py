"""Reads the recorders' segments: what was committed, what is torn, and in plain sentences what is wrong.

Torn is normal: a process that is killed may leave one record per thread without its commit byte. Wrong is everything
else that a well recorder never leaves; what can still be read of such a file is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost_member.segments import COMMITTED, HEADER_BYTES, Header, Layout, read_header

Records = NDArray[np.void]

_NAME = re.compile(r"(?P<actor>[A-Za-z0-9_.-]+)\.\d+\.seg")
_MOST_THREADS = 1 << 15


@dataclass(frozen=True)
class Segment:
    """One file: its header, its committed records (mapped, not copied), and sentences about what is wrong with it."""

    path: Path
    header: Header
    records: Records
    torn: int
    damage: tuple[str, ...]

    def found(self, *damage: str) -> Segment:
        """The same segment with more damage."""
        return replace(self, damage=(*self.damage, *damage))


def read_segments(directory: Path) -> tuple[list[Segment], dict[Path, str]]:
    """All segments of a folder, compared with each other; and the files that are none, each with the reason."""
    segments, none = [], {}
    for path in sorted(directory.glob("*.seg")):
        try:
            segments.append(read_segment(path))
        except OSError as error:
            none[path] = f"it cannot be read: {error.strerror}"
        except ValueError as error:
            none[path] = str(error)
    return _compared(segments), none


def read_segment(path: Path) -> Segment:
    """One segment by itself.

    Raises:
        ValueError: it is none, or says that it is somebody else's.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        header = read_header(file.read(HEADER_BYTES))
    name = _NAME.fullmatch(path.name)
    if name is None or name["actor"] != header.actor:
        raise ValueError(f"it says that it belongs to {header.actor[:120]!a}, which is not what its name says")
    if header.thread >= _MOST_THREADS:
        raise ValueError(f"it says that it belongs to thread {header.thread}, which cannot be")
    damage = []
    there = min(header.capacity, (path.stat().st_size - HEADER_BYTES) // header.layout.bytes)
    if there < header.capacity:
        damage.append(f"it is cut short: it has room for {there} of {header.capacity} records")
    dtype = _dtype(header.layout)
    mapped: Records = np.memmap(path, dtype, "r", HEADER_BYTES, there) if there else np.empty(0, dtype)
    committed = mapped["commit"] == COMMITTED
    end = there - int(np.argmax(committed[::-1])) if committed.any() else 0
    torn = int(mapped[end:].view(np.int64).reshape(-1, dtype.itemsize // 8).any(axis=1).sum())
    if torn > 1:
        damage.append(f"{torn} records at its end were begun and not committed; a killed thread leaves one at most")
    records, holes = mapped[:end], end - int(committed[:end].sum())
    if holes:
        records = take(records, committed[:end])
        damage.append(f"{holes} records in its midst are not committed")
    return Segment(path, header, records, torn, tuple(damage))


def without_strangers(segment: Segment, partitions: Collection[int]) -> Segment:
    """The same segment; that it has records of other partitions than these is damage (the records stay)."""
    strange = sorted(set(np.unique(segment.records["tp"]).tolist()) - set(partitions))
    if not strange:
        return segment
    return segment.found(
        f"it has records of partitions that the run does not have: {', '.join(map(str, strange[:10]))}"
    )


def by_partition(segments: Sequence[Segment], order: str) -> Iterator[Records]:
    """The records of one actor, partition by partition, as copies with ``thread`` filled in, ascending by ``order``."""
    parts: dict[int, list[tuple[Segment, NDArray[np.intp]]]] = defaultdict(list)
    for segment in segments:
        tps = np.ascontiguousarray(segment.records["tp"])
        narrow = bool(len(tps)) and tps.min() >= 0 and tps.max() < 1 << 16  # numpy sorts these by radix
        places = np.argsort(tps.astype(np.uint16) if narrow else tps, kind="stable")
        numbers, starts = np.unique(tps[places], return_index=True)
        for number, chosen in zip(numbers.tolist(), np.split(places, starts)[1:], strict=True):
            parts[number].append((segment, chosen))
    for number in sorted(parts):
        rows = _gathered(parts.pop(number))
        key = rows[order]
        yield rows if (key[1:] > key[:-1]).all() else take(rows, np.argsort(key, kind="stable"))


def take(rows: Records, places: NDArray[Any]) -> Records:
    """``rows[places]``, copied as blocks of bytes: numpy would go field by field, twenty times slower."""
    taken: Records = _blocks(rows)[places].view(rows.dtype)
    return taken


def _dtype(layout: Layout) -> np.dtype[np.void]:
    names, formats, offsets = zip(*layout.fields, strict=True)
    return np.dtype(
        {"names": list(names), "formats": list(formats), "offsets": list(offsets), "itemsize": layout.bytes}
    )


def _blocks(rows: Records) -> Records:
    return rows.view(np.dtype((np.void, rows.dtype.itemsize)))


def _gathered(parts: Sequence[tuple[Segment, NDArray[np.intp]]]) -> Records:
    """Copies of the chosen records of several segments, with their thread."""
    blocks = np.concatenate([_blocks(segment.records)[chosen] for segment, chosen in parts])
    rows: Records = blocks.view(parts[0][0].records.dtype)
    rows["thread"] = np.repeat([segment.header.thread for segment, _ in parts], [len(chosen) for _, chosen in parts])
    return rows


def _compared(segments: Sequence[Segment]) -> list[Segment]:
    """The same segments, with what does not fit: a gap in a thread's sequence, one that is not full, another boot."""
    threads: dict[Any, list[Segment]] = defaultdict(list)
    for segment in segments:
        threads[segment.header.actor, segment.header.layout.kind, segment.header.thread].append(segment)
    fitted = []
    for thread in threads.values():
        for expected, segment in enumerate(sorted(thread, key=lambda segment: segment.header.order)):
            misfits = []
            if segment.header.order != expected:
                misfits.append(
                    f"it is segment {segment.header.order} of its thread, and segment {expected} was expected"
                )
            if expected < len(thread) - 1 and len(segment.records) < segment.header.capacity:
                misfits.append("it is not full, and yet its thread went on in another")
            if segment.header.boot_id != segments[0].header.boot_id:
                misfits.append("it was written under another boot of the host: its times do not compare")
            fitted.append(segment.found(*misfits))
    return fitted
