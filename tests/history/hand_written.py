"""All hand-written histories, each by its name, ready to be sealed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import history
from history.builder import HistoryBuilder


class HandWritten(NamedTuple):
    """A history that is told, and not sealed yet."""

    name: str
    history: HistoryBuilder


def cases() -> Iterator[Any]:
    """The ``CASES`` of the modules of histories, each once."""
    modules = sorted(path.stem for path in Path(history.__path__[0]).glob("test_*.py"))
    found = {id(c): c for name in modules for c in getattr(import_module(f"history.{name}"), "CASES", ())}
    return iter(found.values())


def hand_written(folder: Path) -> Iterator[HandWritten]:
    """Every history, each in a folder of its own below ``folder``."""
    numbers = itertools.count()
    for case in cases():
        if callable(case):
            for wrong in (True, False):
                h = HistoryBuilder(folder / str(next(numbers)), 2)
                case(h, wrong)
                yield HandWritten(f"{case.__name__} {wrong}", h)
            continue
        for form in case.forms:
            for way in case.ways:
                h = case.told(folder / str(next(numbers)), way, form)
                yield HandWritten(f"{case.tell.__name__} {way} {form}", h)
