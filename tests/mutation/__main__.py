"""Plants wrong lines into the checkers, one after the other, and tells which of them no test notices.

    make mutation                          # all that were not tried yet: hours; goes on where it stopped
    make mutation PATTERN='*.oracle.*'     # those of some functions; the survivors among them again
    make mutation SAMPLE=500               # as many as that at random, the same ones each time

mutmut makes the mutants, runs the tests that reach each (cheapest first, and only until one fails) and keeps the
results in ``build/mutation``. A function that changed is tried again. A survivor is either a gap in the tests, or is
explained in ``survivors.toml``: nobody could tell it from the right line.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

PACKAGE = "fencepost.checkers."
SOURCES = Path(PACKAGE.replace(".", "/"))
STATS = Path("mutants/mutmut-stats.json")
EXPLAINED = Path(__file__).with_name("survivors.toml")
NOTICED = {"killed", "timeout", "segfault"}
SMALLEST = f"{PACKAGE}facts.*"  # mutmut makes all mutants when it is asked for some
SEED = 4


class Mutant(NamedTuple):
    """One wrong line; ``status`` in mutmut's words, "not checked" until it was tried."""

    name: str
    source: Path
    status: str

    @property
    def package(self) -> str:
        return self.name.removeprefix(PACKAGE).partition(".")[0]

    @property
    def place(self) -> str:
        """Of the function, as in ``oracle.order.poll_skip`` or ``tables.spans.Spans.of``."""
        module, _, name = self.name.partition("__mutmut_")[0].rpartition(".")
        return f"{module}.{name.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}".removeprefix(PACKAGE)

    def change(self) -> tuple[str, str]:
        """The lines that it takes out, and those that it puts there."""
        lines = get_diff_for_mutant(self.name, path=self.source).splitlines()[2:]
        was, now = ("\n".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
        return was, now


def mutants() -> Iterator[Mutant]:
    for path in sorted(Path("mutants", SOURCES).rglob("*.meta")):
        source = path.relative_to("mutants").with_suffix("")
        for name, code in json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"].items():
            yield Mutant(name, source, status_by_exit_code[code])


def chosen(pattern: str, sample: int) -> list[str]:
    """Those to try: without a pattern or a sample, mutmut's own choice, that is, what was not tried yet."""
    if not pattern and not sample:
        return []
    of = [m for m in mutants() if fnmatchcase(m.name, pattern or "*")]
    if sample:
        random.Random(SEED).shuffle(of)
        of = of[:sample]
    return [m.name for m in of if m.status == "not checked" or (pattern and m.status not in NOTICED)]


def report() -> None:
    """The score of each package, and each survivor that is not explained."""
    explained = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["survivor"]
    tried, counts = [m for m in mutants() if m.status != "not checked"], Counter[tuple[str, str]]()
    for mutant in tried:
        was, now = ("", "") if mutant.status in NOTICED else mutant.change()
        known = any(_speaks_of(entry, mutant.place, was, now) for entry in explained)
        fate = "noticed" if mutant.status in NOTICED else "explained" if known else "left"
        for package in (mutant.package, "all"):
            counts[package, fate] += 1
        if fate == "left":
            print(f"\n{mutant.name}: {mutant.status}\n  - {was}\n  + {now}")
    print(f"\n{'package':16}{'tried':>8}{'noticed':>9}{'explained':>11}{'left':>6}{'score':>9}")
    for package in [*sorted({m.package for m in tried}), "all"]:
        noticed, known, left = (counts[package, fate] for fate in ("noticed", "explained", "left"))
        total = noticed + known + left
        print(f"{package:16}{total:8}{noticed:9}{known:11}{left:6}{noticed / max(1, total - known):9.1%}")


def _speaks_of(entry: Mapping[str, str], place: str, was: str, now: str) -> bool:
    found = {"place": place, "was": was, "now": now}
    return all(fnmatchcase(found[name], entry[name]) for name in found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutation", description=__doc__)
    parser.add_argument("--pattern", default="", help="of mutants' names, as for a shell")
    parser.add_argument("--sample", type=int, default=0, help="how many of them, at random")
    asked = parser.parse_args()
    run = [sys.executable, "-m", "mutmut", "run"]
    newest = max(path.stat().st_mtime for path in SOURCES.rglob("*.py"))
    if STATS.exists() and STATS.stat().st_mtime < newest:
        STATS.unlink()  # it says which tests reach which function
    if next(mutants(), None) is None:
        subprocess.run([*run, SMALLEST], check=True)
    names = chosen(asked.pattern, asked.sample)
    if names or not (asked.pattern or asked.sample):
        subprocess.run([*run, *names], check=True)
    report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
