"""The one lock between processes, on an open file or folder. It ends with its process, however that ends."""

from __future__ import annotations

import fcntl
from typing import Any


def take(file: Any) -> None:
    """Wait for the lock; ``file``: an open file, or a descriptor."""
    fcntl.flock(file, fcntl.LOCK_EX)


def try_take(file: Any) -> bool:
    """Whether the lock could be taken at once."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
