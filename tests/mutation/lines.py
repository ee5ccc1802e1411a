"""Which lines of the checkers are run: what does not run a line cannot notice that it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NamedTuple

from tracing import Note, traced

RIGHT = "__mutmut_orig"  # how mutmut names the function without a mutant


class _Place(NamedTuple):
    """The function, as mutmut names it, of which some code is; and the line in the file where that begins."""

    function: str
    begin: int


_places: dict[CodeType, _Place | None] = {}


@contextmanager
def reached() -> Iterator[dict[str, int]]:
    """The functions that are called in this thread meanwhile, and which of their lines are run: bits, from 1 where the
    function begins."""
    found: dict[str, int] = {}

    def note_of(frame: FrameType) -> Note | None:
        place = _place(frame)
        if place is None:
            return None
        function, begin = place
        found.setdefault(function, 0)

        def note(line: int) -> None:
            found[function] |= 1 << line - begin + 1

        return note

    with traced(note_of):
        yield found


def _place(frame: FrameType) -> _Place | None:
    code = frame.f_code
    if code not in _places:
        _, _, name = code.co_qualname.rpartition(".")
        if name.endswith(RIGHT):
            _note(code, _Place(f"{frame.f_globals['__name__']}.{name.removesuffix(RIGHT)}", code.co_firstlineno))
        else:
            _places[code] = None
    return _places[code]


def _note(code: CodeType, place: _Place) -> None:
    """The same for the functions and comprehensions inside."""
    _places[code] = place
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _note(inner, place)
