"""The seal: what the actors recorded becomes the history that is judged.

Segments become ``delivered/<actor>.parquet`` and ``produced/<actor>.parquet`` with ``.unacked.parquet``; the lines of
all actors become ``events.parquet``. What is damaged is reported in ``seal.json`` and kept as it is; segments that were
sealed well are removed, event lines stay. Sealing twice, or again after a seal that was cut off, changes nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from fencepost.errors import RunFolderError
from fencepost.evidence import columns, event_table
from fencepost.evidence.segment_reader import Segment, by_partition, read_segments, without_strangers
from fencepost.history import DELIVERED_COLUMNS, PRODUCED_COLUMNS
from fencepost.model import TopicPartition
from fencepost.store import RunFolder
from fencepost_member.segments import DELIVERED

REPORT = "history/seal.json"


@dataclass(frozen=True)
class FileReport:
    """What became of one raw file.

    Attributes:
        file: its name under ``history/``.
        records: how many records (or events) of it are in the history.
        torn: how many were being written when the process was killed: no record, and no damage.
        damage: sentences about what is wrong; such a file is kept.
    """

    file: str
    records: int
    torn: int
    damage: tuple[str, ...]


@dataclass(frozen=True)
class SealReport:
    """What became of every raw file, by name. ``damage`` names the file in each sentence."""

    files: tuple[FileReport, ...]

    @property
    def damage(self) -> tuple[str, ...]:
        """Every sentence about damage in the run."""
        return tuple(f"{file.file}: {sentence}" for file in self.files for sentence in file.damage)


def seal(run: Path, partitions: Mapping[TopicPartition, int] | None = None) -> SealReport:
    """Seal the run folder ``run`` and write ``history/seal.json``. All actors must have ended.

    Args:
        run: the run folder.
        partitions: the numbers ``tp``; records of another number are reported as damage. None: not looked at.

    Raises:
        RunFolderError: the folder is none, or the history cannot be written (disk full). Nothing is lost: seal again.
    """
    folder = RunFolder.open(run)
    segments, none = read_segments(folder.history / "segments")
    if partitions is not None:
        segments = [without_strangers(segment, partitions.values()) for segment in segments]
    actors: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        actors[segment.header.actor, segment.header.layout.kind].append(segment)
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(_seal_actor, folder.history, of_actor) for of_actor in actors.values()]
            reports = _seal_events(folder.history)
            sealed = [segment for job in jobs for segment in job.result()]
        reports += [_report(segment.path, len(segment.records), segment.torn, segment.damage) for segment in sealed]
        reports += [_report(path, 0, 0, [sentence]) for path, sentence in none.items()]
        report = _store(folder, reports)
        _remove_well_sealed(sealed, none)
        for draft in (folder.history / "segments").glob("*.new"):  # never got its name, never held a record
            draft.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunFolderError(
            f"the history in {run} cannot be written: {reason}. Nothing is lost: seal it again"
        ) from error
    return report


def _seal_actor(history: Path, segments: Sequence[Segment]) -> Sequence[Segment]:
    """Write what one actor recorded; returns its segments with what was found on the way."""
    header, names = segments[0].header, frozenset(segment.path.name for segment in segments)
    main = history / ("delivered" if header.layout is DELIVERED else "produced") / f"{header.actor}.parquet"
    earlier = columns.sealed_from(main)
    if earlier - names:  # sealed before, and some of it is removed: the file must not be made from the rest
        late = "it appeared after its actor had been sealed, and is not part of the history"
        return [segment if segment.path.name in earlier else segment.found(late) for segment in segments]
    if header.layout is DELIVERED:
        columns.write(main, DELIVERED_COLUMNS, columns.delivered(by_partition(segments, "ord")), names)
    else:
        others = columns.produced(by_partition(segments, "sent_ns"), acked=False)
        columns.write(main.with_suffix(".unacked.parquet"), PRODUCED_COLUMNS, others, names)
        columns.write(main, PRODUCED_COLUMNS, columns.produced(by_partition(segments, "offset"), acked=True), names)
    return segments


def _seal_events(history: Path) -> list[FileReport]:
    rows, reports = [], []
    files = sorted((history / "events").glob("*.jsonl"))
    for path in files:
        found, events, torn, damage = event_table.read_rows(path)
        rows += found
        reports.append(_report(path, events, torn, damage))
    table = history / "events.parquet"
    if files or not table.exists():  # the lines of an old folder may be gone
        event_table.write(table, rows)
    return reports


def _report(path: Path, records: int, torn: int, damage: Iterable[str]) -> FileReport:
    return FileReport(f"{path.parent.name}/{event_table.printable(path.name)}", records, torn, tuple(damage))


def _store(folder: RunFolder, reports: Sequence[FileReport]) -> SealReport:
    """Write ``seal.json``; what an earlier seal said of files that are gone by now stays in it."""
    files = {report.file: report for report in (*_earlier(folder), *reports)}
    report = SealReport(tuple(files[name] for name in sorted(files)))
    folder.write_json(REPORT, {"files": [asdict(file) for file in report.files]})
    return report


def _earlier(folder: RunFolder) -> list[FileReport]:
    try:
        files = folder.read_json(REPORT)["files"]
        return [FileReport(**{**file, "damage": tuple(file["damage"])}) for file in files]
    except (RunFolderError, KeyError, TypeError):
        return []


def _remove_well_sealed(segments: Sequence[Segment], none: Iterable[Path]) -> None:
    """Remove the segments of every actor of which no file is damaged."""
    damaged = {_actor(path) for path in none} | {_actor(segment.path) for segment in segments if segment.damage}
    for segment in segments:
        if _actor(segment.path) not in damaged:
            segment.path.unlink(missing_ok=True)


def _actor(path: Path) -> str:
    return path.name.rsplit(".", 2)[0]
