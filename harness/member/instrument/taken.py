"""What a program takes out of the lists of records that a poll returned.

A program may receive a list and never look at a part of it. Such a record was not processed, whatever the program
commits. The lists that it gets are therefore of a subclass, which notes every record that is taken: by iteration, by
index, as a slice. What changes, copies or pickles a list takes all of it.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Tuple


class Taking:
    """The records of one poll: which of them the program has taken.

    Attributes:
        marks: by position in the poll, whether a record was taken.
        opened: called when the program first iterates over a list, with the positions of the list's records.
    """

    __slots__ = ("marks", "opened")

    def __init__(self, count: int, opened: Callable[[Taking, range], None]) -> None:
        self.marks, self.opened = bytearray(count), opened


class TakenList(List[Any]):
    """A list of records that marks what is taken out of it; otherwise it is a list."""

    def __init__(self, records: List[Any], taking: Taking, start: int = 0) -> None:
        """``start``: the position in the poll of the first of these records."""
        super().__init__(records)
        self._taking, self._start, self._opened = taking, start, False

    def __iter__(self) -> Iterator[Any]:
        marks, position = self._taking.marks, self._start
        self._open()
        end = len(marks)  # the program may add to the list meanwhile
        for record in super().__iter__():
            if position < end:
                marks[position] = 1
                position += 1
            yield record

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        places, marks = range(self._start, self._start + len(self))[at], self._taking.marks
        for position in places if isinstance(at, slice) else (places,):
            if position < len(marks):
                marks[position] = 1
        return found

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._all()[::-1])

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        return list, (self._all(),)

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._taking.opened(self._taking, range(self._start, self._start + len(self)))

    def _all(self) -> List[Any]:
        """A plain list of all records, which are all taken."""
        return list(self)


def _taking_all(name: str) -> Any:
    own = getattr(list, name)

    def call(self: TakenList, *args: Any, **options: Any) -> Any:
        self._all()
        return own(self, *args, **options)

    call.__name__ = name
    return call


# Each of these changes or copies the list, after which positions say nothing: then all of it counts as taken.
TakenList.__radd__ = lambda self, other: other + self._all()  # type: ignore[attr-defined]
for _name in (
    *("append", "clear", "copy", "extend", "insert", "pop", "remove", "reverse", "sort"),
    *("__add__", "__delitem__", "__iadd__", "__imul__", "__mul__", "__rmul__", "__setitem__"),
):
    setattr(TakenList, _name, _taking_all(_name))
