"""Java's class-data archive for Spark: made once per machine, it shortens the start of a session by two thirds.

The JVM of the first session records which classes it loaded and writes the archive while it ends (15 s of one core,
after all results are returned). An archive is valid for one Java, one PySpark and one location of its jars. If the
cache is not writable, no archive is made and sessions only start more slowly.
"""

from __future__ import annotations

import hashlib
import stat
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOADED = "core"  # change this name when sessions load other classes: the old archive would help less
KEEP = 2  # archives of other environments; each has some 70 MB
SETTLED_S = 3.0
LATE_S = 300.0


@dataclass(frozen=True)
class Archive:
    """The part of a session in using or making the archive.

    Attributes:
        options: of the JVM: use the archive, or make it, or nothing (another session is making it now).
        claim: the file that shows that this session makes the archive; None if it does not.
    """

    options: tuple[str, ...] = ()
    claim: Path | None = None

    def give_up(self) -> None:
        """Remove the claim: this session will not make the archive."""
        if self.claim is not None:
            self.claim.unlink(missing_ok=True)


def of(home: Path, java: str, version: str, jars: Path) -> Archive:
    """The archive in ``home`` for this ``java``, PySpark ``version`` and folder of ``jars``."""
    key = hashlib.sha256(f"{java}\n{version}\n{jars}\n{jars.stat().st_mtime_ns}\n{LOADED}".encode()).hexdigest()[:16]
    archive, claim = home / f"{key}.jsa", home / f"{key}.claim"
    try:
        home.mkdir(parents=True, exist_ok=True)
        _adopt(home, archive, claim)
        if archive.exists():
            return Archive((f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"))
        if claim.exists() and time.time() - claim.stat().st_mtime < LATE_S:
            return Archive()
        claim.touch()
    except OSError:
        return Archive()
    part = home / f"{key}.{uuid.uuid4().hex[:8]}.part"
    return Archive((f"-XX:ArchiveClassesAtExit={part}", "-Xlog:disable"), claim)


def _adopt(home: Path, archive: Path, claim: Path) -> None:
    """Rename a finished (read-only) archive, and remove old files. The JVM itself rejects a truncated archive."""
    for part in home.glob("*.part"):
        with suppress(FileNotFoundError):
            state = part.stat()
            age_s = time.time() - state.st_mtime
            if age_s > SETTLED_S and not state.st_mode & stat.S_IWUSR and part.name.startswith(archive.stem):
                part.replace(archive)
                claim.unlink(missing_ok=True)
            elif age_s > LATE_S:
                part.unlink()
    others = [path for path in home.glob("*.jsa") if path != archive]
    for old in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[KEEP:]:
        old.unlink(missing_ok=True)
