"""The one way in which the harness writes a file: readers see what was there before, or all of what is there now.

Members have their own for segments, which are mapped before they get their name (``fencepost_member.segments``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a path beside ``path`` to write to; what was written takes its place after the block.

    If the block raises, ``path`` stays as it was, and nothing else is left.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
