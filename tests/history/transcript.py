"""A history while it is being told, line by line: to be read, to be told again, and to be told with less in it. ::

    lines = transcript(partial(tell, folder, seed))
    run = retold([line.of(line.size) for line in lines], folder)

What is told again is the same to the byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import wraps
from inspect import isfunction, signature
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fencepost.history import RecordState
from fencepost.model import TopicPartition
from history.builder import ORIGIN_NS, HistoryBuilder, MemberTeller, Row, ns

DIGITS = 9  # behind the point of a second are in a history
NAMES = {"HistoryBuilder": HistoryBuilder, "RecordState": RecordState, "TopicPartition": TopicPartition, "ns": ns}
NOT_THERE = (NameError, IndexError, KeyError)  # a line about what another one told, which was left out
SECONDS = re.compile(r"(?<![-\w.])\d+\.\d+")


class Line(NamedTuple):
    """A call of the notation, or a value that is set.

    Attributes:
        size: how much it tells: the length of its list of records, or the number that it writes; else 1.
        records: that list.
    """

    before: str
    after: str = ""
    size: int = 1
    records: tuple[int, ...] | None = None

    def of(self, size: int) -> str:
        """The line with so much of it."""
        if not self.after:
            return self.before
        return f"{self.before}{size if self.records is None else [*self.records[:size]]}{self.after}"


def transcript(tell: Callable[[], object]) -> list[Line]:
    """What is told of one history, until it is sealed; the first line begins it."""
    scribe = _Scribe()
    with pytest.MonkeyPatch.context() as patch:
        for teller in (HistoryBuilder, MemberTeller, Row):
            for name, method in [*vars(teller).items()]:
                if isfunction(method) and (not name.startswith("_") or (teller, name) == (HistoryBuilder, "__init__")):
                    patch.setattr(teller, name, scribe.listening(name, method))
            patch.setattr(teller, "__setattr__", scribe.listening("__setattr__", object.__setattr__), raising=False)
        tell()
    return scribe.lines


def retold(lines: Iterable[str], folder: Path) -> Path:
    """Tell and seal these lines; those that make no sense without another one are left out, too."""
    known: dict[str, Any] = {**NAMES, "folder": folder}
    for line in lines:
        with suppress(*NOT_THERE):
            exec(line, known)
    run: Path = known["h"].seal()
    return run


def script(lines: Sequence[str]) -> list[str]:
    """The lines as one would write them: what is not spoken of again has no name."""
    text = "\n".join(lines)
    spoken_of = Counter(re.findall(r"\w+", text))
    return [re.sub(r"^(\w+) = ", lambda name: name[0] if spoken_of[name[1]] > 1 else "", line) for line in lines]


def rounded(line: str, digits: int) -> str:
    """A line with fewer digits of a second."""
    return SECONDS.sub(lambda number: repr(round(float(number[0]), digits)), line)


class _Scribe:
    """Writes down what it is told from outside; what tellers tell each other it does not hear."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._names: dict[int, str] = {}
        self._busy = False

    def listening(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def told(teller: Any, *args: Any, **kwargs: Any) -> Any:
            if self._busy:
                return method(teller, *args, **kwargs)
            default = {key: one.default for key, one in signature(method).parameters.items()}
            other = {key: value for key, value in kwargs.items() if value != default.get(key, method)}
            said = [*map(self._said, args)], {key: self._said(value) for key, value in other.items()}
            self._busy = True
            try:
                result = method(teller, *args, **kwargs)
            finally:
                self._busy = False
            if name != "seal":
                self.lines.append(self._line(teller, name, args, *said, result))
            return result

        return told

    def _line(
        self, teller: Any, name: str, args: Sequence[Any], said: list[str], also: Mapping[str, str], result: Any
    ) -> Line:
        if name == "__setattr__":
            moment = args[0].endswith("_ns") and args[1] > ORIGIN_NS
            value = f"ns({(args[1] - ORIGIN_NS) / 1e9})" if moment else said[1]
            return Line(f"{self._said(teller)}.{args[0]} = {value}")
        if name == "__init__":
            self._names[id(teller)], call, said = "h", "h = HistoryBuilder", ["folder", *said[1:]]
        else:
            call = f"{self._named(result)}{self._said(teller)}.{name}"
        rest = [*said, *(f"{key}={value}" for key, value in also.items())]
        records = tuple(args[0]) if args and isinstance(args[0], list | range) else None
        if records is None and not (args and name == "write"):
            return Line(f"{call}({', '.join(rest)})")
        after = "".join(f", {one}" for one in rest[1:])
        return Line(f"{call}(", f"{after})", args[0] if records is None else len(records), records)

    def _named(self, result: Any) -> str:
        """The name of what is new, as it is given."""
        new: dict[str, Any] = {}
        if isinstance(result, MemberTeller):
            new = {re.sub(r"\W", "_", result.name): result}
        elif isinstance(result, Row) and id(result) not in self._names:
            new = {f"row{len(self.lines)}": result}
        elif isinstance(result, list):
            new = {f"rows{len(self.lines)}[{n}]": row for n, row in enumerate(result)}
        self._names |= {id(one): name for name, one in new.items()}
        return f"{next(iter(new)).partition('[')[0]} = " if new else ""

    def _said(self, value: Any) -> str:
        if isinstance(value, HistoryBuilder | MemberTeller | Row):
            return self._names.get(id(value), "")
        if isinstance(value, Enum):
            return f"{type(value).__name__}.{value.name}"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self._said(key)}: {self._said(inner)}' for key, inner in value.items())}}}"
        if isinstance(value, list | range):
            return f"[{', '.join(map(self._said, value))}]"
        if type(value) is tuple:
            return f"({', '.join(map(self._said, value))}{',' * (len(value) == 1)})"
        return repr(round(value, DIGITS) if isinstance(value, float) else value)
