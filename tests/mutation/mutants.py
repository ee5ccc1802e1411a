"""The wrong lines that mutmut makes of the checkers, each in a copy of its function, and what became of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant

PACKAGE = "fencepost.checkers."
SOURCES = Path(PACKAGE.replace(".", "/"))
# As mutmut keeps them, which forgets those of a function that changed.
FATES: dict[int | None, str] = {None: "untried", 1: "noticed", 35: "shown", 0: "unnoticed", 33: "unreached"}
CODES = {fate: code for code, fate in FATES.items()}


class Mutant(NamedTuple):
    """One wrong line; ``source``: the file in which it is."""

    name: str
    source: Path
    fate: str

    @property
    def function(self) -> str:
        return self.name.partition("__mutmut_")[0]

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def package(self) -> str:
        return self.name.removeprefix(PACKAGE).partition(".")[0]

    @property
    def place(self) -> str:
        """Of the function, as in ``oracle.order.poll_skip`` or ``tables.spans.Spans.of``."""
        module, _, name = self.function.rpartition(".")
        return f"{module}.{name.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}".removeprefix(PACKAGE)

    def change(self) -> tuple[str, str]:
        """The lines that it takes out, and those that it puts there."""
        lines = get_diff_for_mutant(self.name, path=self.source).splitlines()[2:]
        was, now = ("\n".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
        return was, now

    def lines(self, made: Path) -> int:
        """The lines that it changes, counted from 1 where its function begins, as bits; ``made``: where mutants are."""
        name, _, number = self.name.rpartition(".")[2].rpartition("_")
        right, wrong = (_function(made / self.source, f"{name}_{which}") for which in ("orig", number))
        return sum(
            1 << n for n, (one, other) in enumerate(zip(right, wrong, strict=False), 1) if one != other and n > 1
        )

    def is_of(self, entry: Mapping[str, str]) -> bool:
        """Whether an entry of ``survivors.toml`` speaks of it."""
        if not fnmatchcase(self.place, entry["place"]):
            return False
        was, now = self.change()
        return fnmatchcase(was, entry["was"]) and fnmatchcase(now, entry["now"])


def _function(path: Path, name: str) -> list[str]:
    """Its lines, and some that come after it."""
    _, _, text = _text(path).partition(f"def {name}(")
    return text.partition("__mutmut_")[0].splitlines()


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def made() -> list[Mutant]:
    """All of them, made anew where the source has changed; to be called where ``pyproject.toml`` is."""
    copy_src_dir()
    copy_also_copy_files()
    setup_source_paths()
    with redirect_stdout(None):
        create_mutants(1)
    return [
        Mutant(name, source, FATES[code])
        for source in sorted(SOURCES.rglob("*.py"))
        for name, code in _data(source).exit_code_by_key.items()
    ]


def keep(fates: Iterable[tuple[Mutant, str]]) -> None:
    """Write down what became of some, for this run and the next."""
    by_source: dict[Path, dict[str, int | None]] = defaultdict(dict)
    for mutant, fate in fates:
        by_source[mutant.source][mutant.name] = CODES[fate]
    for source, codes in by_source.items():
        data = _data(source)
        data.exit_code_by_key.update(codes)
        data.save()


def _data(source: Path) -> SourceFileMutationData:
    data = SourceFileMutationData(path=source)
    data.load()
    return data
