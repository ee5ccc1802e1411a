"""Which lines of Python are run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Note = Callable[[int], object]


@contextmanager
def traced(note_of: Callable[[FrameType], Note | None]) -> Iterator[None]:
    """Tell each line that this thread runs meanwhile to what ``note_of`` gives for its frame; None: to nobody."""

    def on_call(frame: FrameType, _: str, __: object) -> Any:
        note = note_of(frame)

        def on_event(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                note(frame.f_lineno)  # type: ignore[misc]
            return on_event

        return on_event if note else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)
