"""A pause of Python's garbage collection while many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """Disable the collection of reference cycles meanwhile: it takes half of the time to make a million objects.

    Also usable as a decorator.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()
