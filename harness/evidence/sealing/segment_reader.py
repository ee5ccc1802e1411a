"""Reads the recorders' segments: committed records, torn records, and sentences about damage.

Torn records are normal: a killed process may leave one record per thread without its commit byte. Everything else that
a correct recorder never writes is damage; the readable records of a damaged file are still read.
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

from fencepost_member.recording.segments import COMMITTED, HEADER_BYTES, Header, Layout, read_header

Records = NDArray[np.void]

_NAME = re.compile(r"(?P<actor>[A-Za-z0-9_.-]+)\.\d+\.seg")
_MOST_THREADS = 1 << 15


@dataclass(frozen=True)
class Segment:
    """One file: its header, its committed records (mapped, not copied), torn records, and sentences about damage."""

    path: Path
    header: Header
    records: Records
    torn: int
    damage: tuple[str, ...]

    def found(self, *damage: str) -> Segment:
        """The same segment with more damage."""
        return replace(self, damage=(*self.damage, *damage))


def read_segments(directory: Path) -> tuple[list[Segment], dict[Path, str]]:
    """All segments of a folder, compared with each other; and the files that are not segments, each with the reason."""
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
    """One segment, not compared with others.

    Raises:
        ValueError: it is not a segment, or its header names another actor than its name.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        header = read_header(file.read(HEADER_BYTES))
    name = _NAME.fullmatch(path.name)
    if name is None or name["actor"] != header.actor:
        raise ValueError(f"its header names the actor {header.actor[:120]!a}, but its file name another one")
    if header.thread >= _MOST_THREADS:
        raise ValueError(
            f"its header names thread {header.thread}, but the highest possible one is {_MOST_THREADS - 1}"
        )
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
        damage.append(f"{torn} records at its end are not committed; a killed thread leaves at most one")
    records, holes = mapped[:end], end - int(committed[:end].sum())
    if holes:
        records = take_rows(records, committed[:end])
        damage.append(f"{holes} records before its end are not committed")
    return Segment(path, header, records, torn, tuple(damage))


def without_strangers(segment: Segment, partitions: Collection[int]) -> Segment:
    """The same segment; records of other partitions than these are reported as damage, and stay in it."""
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
        yield rows if (key[1:] > key[:-1]).all() else take_rows(rows, np.argsort(key, kind="stable"))


def take_rows(rows: Records, places: NDArray[Any]) -> Records:
    """``rows[places]``, copied as blocks of bytes: numpy would copy field by field, twenty times slower."""
    copied: Records = _blocks(rows)[places].view(rows.dtype)
    return copied


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
    """The same segments, with damage that only a comparison shows: a gap in a thread's sequence, a segment that is not
    full although another one follows, another boot of the host."""
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
                misfits.append("it is not full, but its thread continued in another one")
            if segment.header.boot_id != segments[0].header.boot_id:
                misfits.append("it was written after another boot of the host: its times cannot be compared")
            fitted.append(segment.found(*misfits))
    return fitted
