"""The per-user cache: files that are fetched or created once per machine, and installed completely or not at all.

``FENCEPOST_CACHE`` names another folder. Two runs that need the same thing at once do not collide: one creates it,
the other waits.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fencepost.clock import eventually
from fencepost.errors import ProvisionError
from fencepost_member import lock

ProgressCallback = Callable[[str], None]
NEEDED_BYTES = 400_000_000
WAIT_S = 600.0
STAMP = ".stamp.json"


def quiet(message: str) -> None:
    """A progress callback that ignores messages."""


def directory() -> Path:
    """The cache folder of this user, which may not exist yet."""
    chosen = os.environ.get("FENCEPOST_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "fencepost"


def install(name: str, make: Callable[[Path], None]) -> Path:
    """The folder ``name`` of the cache, created by ``make(empty folder)`` when it is missing or was changed.

    Raises:
        ProvisionError: the cache cannot be written or is full, or an error of ``make``.
    """
    home = directory() / name
    if intact(home):
        return home
    try:
        with _locked(name):
            if intact(home):
                return home
            _check_space(home.parent)
            for left in home.parent.glob(f"{name}.*"):  # left by a run that was killed while it created the same
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=home.parent) as temporary:
                made = Path(temporary) / "made"
                made.mkdir()
                make(made)
                (made / STAMP).write_text(json.dumps(_sizes_and_times(made)))
                shutil.rmtree(home, ignore_errors=True)
                made.rename(home)
    except OSError as error:
        raise ProvisionError(_sentence(error)) from error
    return home


def intact(home: Path) -> bool:
    """Whether the folder contains the installed files, judged by their sizes and times (cheap)."""
    with suppress(OSError, ValueError):
        return bool(json.loads((home / STAMP).read_text()) == _sizes_and_times(home))
    return False


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(folder: Path, pins: Mapping[str, str]) -> None:
    """Check that ``folder`` contains exactly the pinned files.

    Raises:
        ProvisionError: names the first file that is missing, unexpected or altered.
    """
    found = {path.name for path in folder.iterdir()}
    for name in sorted(found ^ set(pins)):
        state = "was fetched but is not pinned" if name in found else "is pinned but was not fetched"
        raise ProvisionError(f"{name} {state}: the source served unexpected files; nothing was installed")
    for name, pin in pins.items():
        digest = sha256(folder / name)
        if digest != pin:
            raise ProvisionError(f"{name} has SHA-256 {digest}, but {pin} is pinned; nothing was installed")


def _sizes_and_times(folder: Path) -> dict[str, list[int]]:
    stats = {path.name: path.stat() for path in sorted(folder.iterdir()) if path.name != STAMP}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}


@contextmanager
def _locked(name: str) -> Iterator[None]:
    locks = directory() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / name).open("w") as file:
        awaited = f"another run to finish making {name}"
        eventually(lambda: lock.try_take(file), WAIT_S, awaited, hint=f"Its lock is {file.name}")
        yield


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise ProvisionError(
            f"{folder} has {free // 1_000_000} MB free, but {NEEDED_BYTES // 1_000_000} MB are needed: "
            "free some, or set FENCEPOST_CACHE to a folder on another disk"
        )


def _sentence(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"the cache {directory()} cannot be written ({error}): set FENCEPOST_CACHE to a folder of your own"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of the cache {directory()} is full: free some, or set FENCEPOST_CACHE to another disk"
    return f"the cache {directory()} cannot be used ({error}): set FENCEPOST_CACHE to another folder"
