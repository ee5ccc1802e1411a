"""The seal: turns the recordings of the actors into the history that is judged. It judges nothing itself.

Segments become ``delivered/<actor>.parquet`` and ``produced/<actor>.parquet`` with ``.unacked.parquet``; the lines of
all actors become ``events.parquet``. Damaged files are reported in ``seal.json`` and kept as they are; segments that
were sealed without damage are removed, event lines stay. Sealing twice, or again after an interrupted seal, changes
nothing.

The seal stores a fingerprint of every judged file, by which the judge notices later changes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from fencepost.errors import RunFolderError
from fencepost.evidence.sealing import parquet_events, parquet_records, recreated_topics
from fencepost.evidence.sealing.segment_reader import Segment, by_partition, read_segments, without_strangers
from fencepost.history import DELIVERED_COLUMNS, DELIVERED_VERSION, PRODUCED_COLUMNS
from fencepost.history.run_folder import RunFolder, digest, fingerprint, judged_files
from fencepost.model import TopicPartition
from fencepost_member.recording.segments import DELIVERED

REPORT = "history/seal.json"
_LATE = "it appeared after its actor had been sealed, so it is not part of the history"


@dataclass(frozen=True)
class FileReport:
    """The result for one raw file.

    Attributes:
        file: its name below ``history/``.
        records: how many of its records (or events) are in the history.
        torn: how many records were incomplete when the process was killed; this is not damage.
        damage: sentences about damage; a damaged file is kept.
    """

    file: str
    records: int
    torn: int
    damage: tuple[str, ...]


@dataclass(frozen=True)
class SealReport:
    """The results for all raw files, by name. Each sentence of ``damage`` names its file."""

    files: tuple[FileReport, ...]

    @property
    def damage(self) -> tuple[str, ...]:
        """Every sentence about damage in the run."""
        return tuple(f"{file.file}: {sentence}" for file in self.files for sentence in file.damage)


def seal(run: Path, partitions: Mapping[TopicPartition, int] | None = None) -> SealReport:
    """Seal the run folder ``run`` and write ``history/seal.json``. All actors must have ended.

    Args:
        run: the run folder.
        partitions: the numbers ``tp``; records of other numbers are reported as damage. None: not checked.

    Raises:
        RunFolderError: this is not a run folder, or the history cannot be written (disk full). Nothing is lost: seal
            again.
    """
    folder = RunFolder.open(run)
    earlier, known = _earlier(folder)
    try:
        segments, none = read_segments(folder.history / "segments")
        if partitions is not None:
            segments = [without_strangers(segment, partitions.values()) for segment in segments]
        gone = {_actor(file) for file in earlier if not (folder.history / file).exists()} - {""}
        late = [segment.found(_LATE) for segment in segments if segment.header.actor in gone]
        segments = [segment for segment in segments if segment.header.actor not in gone]
        segments, gone_partitions = _split_generations(folder, segments)
        reports, written = _write(folder.history, segments)
        written += gone_partitions
        reports += [_report_of(segment) for segment in (*segments, *late)]
        reports += [_report(path, 0, 0, [sentence]) for path, sentence in none.items()]
        files = {report.file: report for report in reports}
        files |= {file: old for file, old in earlier.items() if file not in files or _actor(file) in gone}
        report = SealReport(tuple(files[name] for name in sorted(files)))
        new = set(judged_files(run)) - set(known) | {path.relative_to(run).as_posix() for path in written}
        fingerprints = {**known, **{name: fingerprint(run, name) for name in sorted(new)}}
        content = {"files": [asdict(file) for file in report.files], "fingerprints": fingerprints}
        folder.write_json(REPORT, {**content, "digest": digest(content)})
        _remove_well_sealed(folder, files)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunFolderError(
            f"the history in {run} cannot be written: {reason}. Nothing is lost: seal it again"
        ) from error
    return report


def _split_generations(folder: RunFolder, segments: list[Segment]) -> tuple[list[Segment], list[Path]]:
    """The same segments, with new numbers for records of deleted partitions; and the files written for that."""
    try:
        entries = folder.read_json(recreated_topics.PARTITIONS)["partitions"]
        segments, gone = recreated_topics.split_generations(folder.history, segments, entries)
    except (
        RunFolderError,
        KeyError,
        TypeError,
        ValueError,
    ):  # there was no audit, or its result is damaged; the judge reports that
        return segments, []
    now = [*(entry for entry in entries if "renewed" not in entry), *gone]
    if now == entries:
        return segments, []
    folder.write_json(recreated_topics.PARTITIONS, {"partitions": now})
    return segments, [folder.path / recreated_topics.PARTITIONS]


def _write(history: Path, segments: Sequence[Segment]) -> tuple[list[FileReport], list[Path]]:
    """Write the Parquet files of all actors and of the events; return the reports on event files, and all paths."""
    actors: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        actors[segment.header.actor, segment.header.layout.kind].append(segment)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(_seal_actor, history, of_actor) for of_actor in actors.values()]
        reports, table = _seal_events(history)
        return reports, [*table, *(path for job in jobs for path in job.result())]


def _seal_actor(history: Path, segments: Sequence[Segment]) -> list[Path]:
    header = segments[0].header
    if header.layout is DELIVERED:
        main = history / "delivered" / f"{header.actor}.parquet"
        groups = parquet_records.delivered(by_partition(segments, "ord"))
        parquet_records.write(main, DELIVERED_COLUMNS, groups, DELIVERED_VERSION)
        return [main]
    main = history / "produced" / f"{header.actor}.parquet"
    unacked = main.with_suffix(".unacked.parquet")
    parquet_records.write(
        main, PRODUCED_COLUMNS, parquet_records.produced(by_partition(segments, "offset"), acked=True)
    )
    parquet_records.write(
        unacked, PRODUCED_COLUMNS, parquet_records.produced(by_partition(segments, "sent_ns"), acked=False)
    )
    return [main, unacked]


def _seal_events(history: Path) -> tuple[list[FileReport], list[Path]]:
    rows, reports = [], []
    files = sorted((history / "events").glob("*.jsonl"))
    for path in files:
        found, events, torn, damage = parquet_events.read_rows(path)
        rows += found
        reports.append(_report(path, events, torn, damage))
    table = history / "events.parquet"
    if not files and table.exists():  # the lines of an old folder may be gone
        return reports, []
    parquet_events.write(table, rows)
    return reports, [table]


def _report_of(segment: Segment) -> FileReport:
    records = 0 if _LATE in segment.damage else len(segment.records)
    return _report(segment.path, records, segment.torn, segment.damage)


def _report(path: Path, records: int, torn: int, damage: Iterable[str]) -> FileReport:
    return FileReport(f"{path.parent.name}/{parquet_events.printable(path.name)}", records, torn, tuple(damage))


def _earlier(folder: RunFolder) -> tuple[dict[str, FileReport], dict[str, str]]:
    """The reports of an earlier seal, by file, and its fingerprints, which stay valid for unchanged files."""
    try:
        content = folder.read_json(REPORT)
        files = {file["file"]: FileReport(**{**file, "damage": tuple(file["damage"])}) for file in content["files"]}
        return files, dict(content.get("fingerprints", {}))
    except (RunFolderError, KeyError, TypeError, ValueError):
        return {}, {}


def _remove_well_sealed(folder: RunFolder, files: Mapping[str, FileReport]) -> None:
    """Remove the reported segments of every actor without a damaged segment, and drafts, which have no records."""
    damaged = {_actor(name) for name, file in files.items() if file.damage}
    for path in (folder.history / "segments").glob("*.seg"):
        name = f"segments/{path.name}"
        if name in files and _actor(name) not in damaged:
            path.unlink()
    for draft in (folder.history / "segments").glob("*.new"):
        draft.unlink()


def _actor(file: str) -> str:
    """The actor of a segment file; empty for other files."""
    folder, _, name = file.partition("/")
    return name.rsplit(".", 2)[0] if folder == "segments" else ""
