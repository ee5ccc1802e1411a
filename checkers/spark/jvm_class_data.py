"""Java's class-data archive for Spark: made once per machine, it takes two thirds off the start of a session.

The JVM of the first session records which classes it loaded and writes the archive while it ends (15 s of one core,
after everybody has got what they waited for). It belongs to one Java, one PySpark and one place of its jars. Where the
cache cannot be written, nothing is made and only time is lost.
"""

from __future__ import annotations

import hashlib
import stat
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOADED = "core"  # another name when sessions come to load other classes: the old archive would help them less
KEEP = 2  # archives of other environments; each has some 70 MB
SETTLED_S = 3.0
LATE_S = 300.0


@dataclass(frozen=True)
class Archive:
    """What a session has to do with the archive.

    Attributes:
        options: for the JVM: use it, or make it, or nothing (somebody else is making it now).
        claim: the file that says that this session makes it; None when it does not.
    """

    options: tuple[str, ...] = ()
    claim: Path | None = None

    def give_up(self) -> None:
        """This session will not make it after all."""
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
    """Give a finished archive its name. The JVM writes it in one go and makes it read-only; a torn one it refuses."""
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
