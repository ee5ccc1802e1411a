"""Atomic writing of files, used by the whole harness: readers see the old content, or all of the new content.

Members write segments differently (``fencepost_member.recording.segments``): these are mapped before they get their
final name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; after the block, the file written there replaces ``path``.

    If the block raises, ``path`` stays as it was, and the temporary file is removed.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
