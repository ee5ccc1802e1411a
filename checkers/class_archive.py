"""Java's class-data archive for Spark: made once per machine, it takes two thirds off the start of a session.

The JVM of the first session records which classes it loaded and writes the archive while it ends, after everybody has
got what they waited for. It belongs to one Java, one PySpark and one place of its jars; another one is simply not used.
"""

from __future__ import annotations

import hashlib
import stat
import time
import uuid
from contextlib import suppress
from pathlib import Path

KEEP = 2  # archives of other environments; each has some 170 MB
SETTLED_S = 3.0
LATE_S = 600.0


def options(home: Path, java: str, version: str, jars: Path) -> tuple[list[str], bool]:
    """The JVM options that use the archive in ``home``, or that make it; and whether this session makes it.

    Args:
        home: where archives are kept; made when it is missing. A home that cannot be written costs only time.
        java, version, jars: what the archive depends on.
    """
    key = hashlib.sha256(f"{java}\n{version}\n{jars}\n{jars.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    archive = home / f"{key}.jsa"
    try:
        home.mkdir(parents=True, exist_ok=True)
        _adopt(home, archive)
    except OSError:
        return [], False
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"], False
    return [f"-XX:ArchiveClassesAtExit={home / f'{key}.{uuid.uuid4().hex[:8]}.part'}", "-Xlog:disable"], True


def _adopt(home: Path, archive: Path) -> None:
    """Give a finished archive its name. The JVM writes it in one go and makes it read-only; a torn one it refuses."""
    for part in home.glob("*.part"):
        with suppress(FileNotFoundError):
            state = part.stat()
            age_s = time.time() - state.st_mtime
            if age_s > LATE_S and not part.name.startswith(archive.stem):
                part.unlink()
            elif age_s > SETTLED_S and not state.st_mode & stat.S_IWUSR and part.name.startswith(archive.stem):
                part.replace(archive)
    others = sorted(home.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in [path for path in others if path != archive][KEEP:]:
        old.unlink(missing_ok=True)
