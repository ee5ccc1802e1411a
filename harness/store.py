"""The run folder on disk: its folders, and the JSON files at its top.

``fencepost.history`` says what all files mean; those of the history are written by what gathers them. JSON is written
to a temporary name and renamed, so that a reader never sees half a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fencepost.errors import RunFolderError
from fencepost.history import FORMAT_VERSION, JUDGED
from fencepost.model import Verdict

SIGNS = ("scenario.json", "history/events", "history/events.parquet")  # of a run folder: one at least


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
            RunFolderError: it is not there, or not a run folder.
        """
        if not path.is_dir():
            raise RunFolderError(f"there is no run folder {path}")
        if not any((path / part).exists() for part in SIGNS):
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
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        text = json.dumps({"format_version": FORMAT_VERSION, **value}, indent=2, ensure_ascii=False, default=str)
        try:
            # What is no text, because an escape in some JSON said half a character, stays that escape.
            temporary.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise RunFolderError(f"{path} cannot be written: {error.strerror or error}") from error
        return path

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one JSON file.

        Raises:
            RunFolderError: it is missing, damaged, or of another format version.
        """
        path = self.path / name
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
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


def judged_files(run: Path) -> dict[str, str]:
    """The files of a run folder that are judged, by name below it, and the part of the history that each tells of."""
    found = ((path, part) for pattern, part in JUDGED.items() for path in run.glob(pattern) if path.is_file())
    return {path.relative_to(run).as_posix(): part for path, part in found}


def part_of(name: str) -> str:
    """The part of the history that a file tells of, whether it is there or not; ``run`` if it tells of none."""
    return next((part for pattern, part in JUDGED.items() if PurePosixPath(name).match(pattern)), "run")


def digest(value: dict[str, Any]) -> str:
    """What tells a JSON object from another one: the SHA-256 of its fields in order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """What tells a file from another one, and from itself in another state: its size and the SHA-256 of its content.

    Of Parquet only the footer is looked at, which has the places, sizes and statistics of all the rest.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if path.suffix == ".parquet" and size > 8:
            file.seek(-8, os.SEEK_END)
            footer = int.from_bytes(file.read(4), "little")  # its length, as Parquet keeps it
            file.seek(max(0, size - 8 - footer))
        return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"
