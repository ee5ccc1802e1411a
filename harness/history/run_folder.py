"""The run folder on disk: its folders, the JSON files at its top, and how any of its files is opened.

``fencepost.history`` says what all files mean; those of the history are written by what gathers them.

A run folder may come from anybody. Whoever judges, reports or replays it reads a file of it by ``opened`` and lists a
folder of it by ``listed``: nothing that stands there instead of a file is waited for, and nothing outside is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any

from fencepost.errors import RunFolderError
from fencepost.history import FORMAT_VERSION, JUDGED
from fencepost.history.atomic import replacing
from fencepost.model import Verdict

SIGNS = ("scenario.json", "history/events", "history/events.parquet")  # of a run folder: one at least
DRAWN = ("verdict.json", "report.html", "junit.xml")  # written anew by whoever judges
TEXTS, TEXT_BYTES = (".json", ".jsonl"), 1 << 30  # they are read as a whole, and a day's have less
STRANGE = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class RunFolder:
    """One run's folder. ``path`` is all it knows."""

    path: Path

    @classmethod
    def create(cls, runs: Path, scenario: str, seed: int) -> RunFolder:
        """A new folder ``<scenario>-<seed>-<start time>`` under ``runs``; never one that exists already."""
        name = re.sub(r"[^A-Za-z0-9_.]+", "-", scenario).strip("-.")[:60] or "run"
        runs = runs.absolute()  # processes with other working directories write here
        stem = f"{name}-{seed}-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
            path = runs / f"{stem}{suffix}"
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise RunFolderError(
                    f"cannot make the run folder {path}: {error.strerror}; choose another --runs"
                ) from error
            for part in ("history/events", "history/segments", "history/coordinator", "history/log", "logs"):
                (path / part).mkdir(parents=True)
            return cls(path)
        raise RunFolderError(f"there are already 1,000 runs called {stem} under {runs}")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing folder.

        Raises:
            RunFolderError: it is not there, not a run folder, or cannot be read.
        """
        try:
            os.scandir(path).close()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RunFolderError(f"there is no run folder {path}") from error
        except OSError as error:
            raise RunFolderError(f"the run folder {path} cannot be read: {error.strerror}") from error
        if not any(os.path.lexists(path / part) for part in SIGNS):
            raise RunFolderError(f"{path} is not a run folder: it has none of {', '.join(SIGNS)}")
        return cls(path)

    @property
    def history(self) -> Path:
        """Where the history is."""
        return self.path / "history"

    @property
    def logs(self) -> Path:
        """Where the output of every process goes."""
        return self.path / "logs"

    def write_json(self, name: str, value: dict[str, Any]) -> Path:
        """Write one JSON file with the format version in front, atomically.

        Raises:
            RunFolderError: it cannot be written (disk full, or something else is in its place).
        """
        path = self.path / name
        text = json.dumps({"format_version": FORMAT_VERSION, **value}, indent=2, ensure_ascii=False, default=str)
        try:
            # What is no text, because an escape in some JSON said half a character, stays that escape.
            with replacing(path) as draft:
                draft.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise RunFolderError(f"{path} cannot be written: {error.strerror or error}") from error
        return path

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one JSON file.

        Raises:
            RunFolderError: it is missing, damaged, or of another format version.
        """
        path = self.path / name
        try:
            with opened(self.path, path) as file:
                value = json.loads(file.read().decode())
        except FileNotFoundError as error:
            raise RunFolderError(f"{path} is missing: the run ended early, or the folder is damaged") from error
        except (OSError, ValueError, RecursionError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}") from error
        if not isinstance(value, dict):
            raise RunFolderError(f"{path} holds no JSON object")
        version = value.pop("format_version", None)
        if version != FORMAT_VERSION:
            raise RunFolderError(
                f"{path} has format version {version!r}; this release reads {FORMAT_VERSION}: use the one that made it"
            )
        return value

    def write_verdict(self, verdict: Verdict) -> Path:
        """Store ``verdict.json``."""
        return self.write_json("verdict.json", verdict.to_json())


def opened(run: Path, path: Path) -> BufferedReader:
    """A file of a run folder, to be read. A link may lead to another one of the folder.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: it cannot be read, or is none that may be; says why.
    """
    place = Path(os.path.realpath(path))
    if not _inside(run, place):
        raise OSError("a link leads out of the run folder")
    _must_be_a_file(place.stat(), path)  # before it is opened, on which a device may act
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.fdopen(os.open(place, flags), "rb")
    try:
        _must_be_a_file(os.fstat(file.fileno()), path)  # another thing may have come there meanwhile
    except OSError:
        file.close()
        raise
    return file


def listed(run: Path, pattern: str) -> list[Path]:
    """What there is by a pattern like those of ``JUDGED``; nothing of a folder that cannot be read, or is outside."""
    folder, _, name = pattern.rpartition("/")
    if not _inside(run, Path(os.path.realpath(run / folder))):
        return []
    try:
        return sorted((run / folder).glob(name))
    except PermissionError:
        return []


def strangers(run: Path) -> Iterator[tuple[str, str]]:
    """What of a run folder cannot be read, or is none of its files: the name below it, and why."""
    unlisted: list[OSError] = []
    for place, folders, files in os.walk(run, onerror=unlisted.append):
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in (*files, *links)):
            name = path.relative_to(run).as_posix()
            if name in DRAWN:
                continue
            try:
                opened(run, path).close()
            except IsADirectoryError:
                continue  # a link to another folder inside
            except OSError as error:
                yield name, str(error)
    for folder in unlisted:
        yield Path(folder.filename).relative_to(run).as_posix(), folder.strerror or str(folder)


def _inside(run: Path, place: Path) -> bool:
    return place.is_relative_to(os.path.realpath(run))


def _must_be_a_file(found: os.stat_result, path: Path) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError("a folder is in its place")
    if kind != stat.S_IFREG:
        raise OSError(f"{STRANGE.get(kind, 'no file')} is in its place")
    if path.suffix in TEXTS and found.st_size > TEXT_BYTES:
        raise OSError(f"it has {found.st_size:,} bytes, and no such file has more than {TEXT_BYTES:,}")


def judged_files(run: Path) -> dict[str, str]:
    """The files of a run folder that are judged, by name below it, and the part of the history that each tells of."""
    found = {}
    for pattern, part in JUDGED.items():
        for path in listed(run, pattern):
            with suppress(PermissionError):  # of the place that a link leads to
                if path.is_file():
                    found[path.relative_to(run).as_posix()] = part
    return found


def part_of(name: str) -> str:
    """The part of the history that a file tells of, whether it is there or not; ``run`` if it tells of none."""
    return next((part for pattern, part in JUDGED.items() if PurePosixPath(name).match(pattern)), "run")


def digest(value: dict[str, Any]) -> str:
    """What tells a JSON object from another one: the SHA-256 of its fields in order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def fingerprint(run: Path, name: str) -> str:
    """What tells a file of a run folder from another one, and from itself in another state.

    That is its size and the SHA-256 of its content; of Parquet only that of the footer, which has the places, sizes and
    statistics of all the rest.

    Raises:
        OSError: it cannot be read.
    """
    with opened(run, run / name) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if name.endswith(".parquet") and size > 8:
            file.seek(-8, os.SEEK_END)
            footer = int.from_bytes(file.read(4), "little")  # its length, as Parquet keeps it
            file.seek(max(0, size - 8 - footer))
        return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"
