"""The run folder on disk: its folders, its JSON files, and safe access to all of its files.

``fencepost.history`` documents the format. The modules that collect evidence write the files of the history.

A run folder may come from an untrusted source. So judging, reporting and replaying read its files with ``opened`` and
list its folders with ``listed``: these never wait for something that is not a regular file, and never read outside.
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

MARKERS = ("scenario.json", "history/events", "history/events.parquet")  # a run folder has at least one of these
DRAWN = ("verdict.json", "report.html", "junit.xml")  # written again by every judgement
TEXTS, TEXT_BYTES = (".json", ".jsonl"), 1 << 30  # these files are read as a whole; a run of one day has less
STRANGE = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, at ``path``."""

    path: Path

    @classmethod
    def create(cls, runs: Path, scenario: str, seed: int) -> RunFolder:
        """Create a new folder ``<scenario>-<seed>-<start time>`` below ``runs``.

        Raises:
            RunFolderError: it cannot be made.
        """
        name = re.sub(r"[^A-Za-z0-9_.]+", "-", scenario).strip("-.")[:60] or "run"
        runs = runs.absolute()  # processes with other working directories write here too
        stem = f"{name}-{seed}-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
            path = runs / f"{stem}{suffix}"
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise RunFolderError(
                    f"the run folder {path} cannot be made: {error.strerror}; choose another --runs"
                ) from error
            for part in ("history/events", "history/segments", "history/coordinator", "history/log", "logs"):
                (path / part).mkdir(parents=True)
            return cls(path)
        raise RunFolderError(f"there are already 1,000 runs called {stem} in {runs}; choose another --runs")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing folder.

        Raises:
            RunFolderError: it does not exist, is not a run folder, or cannot be read.
        """
        try:
            os.scandir(path).close()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RunFolderError(f"there is no run folder {path}") from error
        except OSError as error:
            raise RunFolderError(f"the run folder {path} cannot be read: {error.strerror}") from error
        if not any(os.path.lexists(path / part) for part in MARKERS):
            raise RunFolderError(f"{path} is not a run folder: it has none of {', '.join(MARKERS)}")
        return cls(path)

    @property
    def history(self) -> Path:
        """The folder of the history."""
        return self.path / "history"

    @property
    def logs(self) -> Path:
        """The folder for the output of every process."""
        return self.path / "logs"

    def write_json(self, name: str, value: dict[str, Any]) -> Path:
        """Write one JSON file atomically, with the format version as its first field.

        Raises:
            RunFolderError: it cannot be written (disk full, or something else is in its place).
        """
        path = self.path / name
        text = json.dumps({"format_version": FORMAT_VERSION, **value}, indent=2, ensure_ascii=False, default=str)
        try:
            # A lone surrogate, which an escape in some JSON may contain, is written as that escape.
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
            raise RunFolderError(f"{path} does not contain a JSON object")
        version = value.pop("format_version", None)
        if version != FORMAT_VERSION:
            raise RunFolderError(
                f"{path} has format version {version!r}, but this release reads version {FORMAT_VERSION}: use the "
                "release that made it"
            )
        return value

    def write_verdict(self, verdict: Verdict) -> Path:
        """Store ``verdict.json``."""
        return self.write_json("verdict.json", verdict.to_json())


def opened(run: Path, path: Path) -> BufferedReader:
    """Open a file of a run folder for reading. It may be a link to another file of the folder.

    Raises:
        FileNotFoundError: it does not exist.
        OSError: it cannot be read, or is not a regular file of this folder; the message says why.
    """
    place = Path(os.path.realpath(path))
    if not _inside(run, place):
        raise OSError("a link leads out of the run folder")
    _must_be_a_file(place.stat(), path)  # before it is opened: opening a device may have an effect
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.fdopen(os.open(place, flags), "rb")
    try:
        _must_be_a_file(os.fstat(file.fileno()), path)  # it may have been replaced meanwhile
    except OSError:
        file.close()
        raise
    return file


def listed(run: Path, pattern: str) -> list[Path]:
    """The paths that match a pattern of the form in ``JUDGED``; none if the folder cannot be read or is outside."""
    folder, _, name = pattern.rpartition("/")
    if not _inside(run, Path(os.path.realpath(run / folder))):
        return []
    try:
        return sorted((run / folder).glob(name))
    except PermissionError:
        return []


def strangers(run: Path) -> Iterator[tuple[str, str]]:
    """The entries of a run folder that cannot be read or are not regular files: name below the folder, and reason."""
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
        raise OSError(f"it has {found.st_size:,} bytes, but such a file must not have more than {TEXT_BYTES:,}")


def judged_files(run: Path) -> dict[str, str]:
    """The files of a run folder that are judged: name below the folder -> part of the history."""
    found = {}
    for pattern, part in JUDGED.items():
        for path in listed(run, pattern):
            with suppress(PermissionError):  # a link may lead to a folder without access
                if path.is_file():
                    found[path.relative_to(run).as_posix()] = part
    return found


def part_of(name: str) -> str:
    """The part of the history that a file contains, whether it exists or not; ``run`` if it contains none."""
    return next((part for pattern, part in JUDGED.items() if PurePosixPath(name).match(pattern)), "run")


def digest(value: dict[str, Any]) -> str:
    """The SHA-256 of a JSON object, independent of the order of its fields."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def fingerprint(run: Path, name: str) -> str:
    """The size and the SHA-256 of a file of a run folder, by which a later change is noticed.

    For Parquet, only the footer is hashed: it has the positions, sizes and statistics of all other parts.

    Raises:
        OSError: it cannot be read.
    """
    with opened(run, run / name) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if name.endswith(".parquet") and size > 8:
            file.seek(-8, os.SEEK_END)
            footer = int.from_bytes(file.read(4), "little")  # the length of the footer, which Parquet stores here
            file.seek(max(0, size - 8 - footer))
        return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"
