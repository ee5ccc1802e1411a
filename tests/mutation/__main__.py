"""Plants wrong lines into the checkers, one after the other, and tells which of them no test notices.

    make mutation                          # all that were not tried yet; goes on where it stopped
    make mutation PATTERN='*.oracle.*'     # those of some functions
    make mutation SAMPLE=600               # as many as that at random, the same ones each time
    make mutation AGAIN=1                  # those that nothing noticed, once more, however long it takes
    make mutation LIMIT_S=30               # CPU seconds for the trial of one; 3, and with AGAIN none, unless told
    make mutation JOBS=1                   # so many at once, instead of one per core

mutmut makes the mutants and keeps the results, in ``build/mutation``; ``trials`` tries them. A function that changed is
tried again. A survivor is either a gap in the tests, or is explained in ``survivors.toml``: nobody could tell it from
the right line. An explanation that speaks of no survivor is an error.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from mutation import mutants
from mutation.mutants import Mutant

EXPLAINED = Path(__file__).with_name("survivors.toml")
SEED = 15  # a new one once the survivors of a sample were mended, or the next would flatter
LIMIT_S = 3.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutation", description=__doc__)
    parser.add_argument("--pattern", default="*", help="of mutants' names, as for a shell")
    parser.add_argument("--sample", type=int, default=0, help="how many of them, at random")
    parser.add_argument("--again", action="store_true", help="those that nothing noticed")
    parser.add_argument("--limit-s", type=float, help="CPU seconds for the trial of one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at once")
    asked = parser.parse_args()
    todo = chosen(mutants.made(), asked.pattern, asked.sample, asked.again)
    usual_s = math.inf if asked.again else LIMIT_S
    failed = todo and tried(todo, asked.limit_s or usual_s, asked.jobs)
    return int(failed or report(mutants.made()))


def chosen(of: Sequence[Mutant], pattern: str, sample: int, again: bool) -> list[Mutant]:
    of = [mutant for mutant in of if fnmatchcase(mutant.name, pattern)]
    if sample:
        of = random.Random(SEED).sample(of, min(sample, len(of)))
    return [m for m in of if (m.fate != "noticed" if again else m.fate == "untried")]


def tried(todo: Sequence[Mutant], limit_s: float, jobs: int) -> int:
    """In the folder of the mutants, whose tests are links to the real ones."""
    here = Path.cwd()
    sys.path[:0] = [str(here / "mutants"), str(here / "mutants" / "tests")]
    from mutation import unchanged
    from mutation.trials import Trials

    settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    os.chdir("mutants")
    try:
        base = here / unchanged.LEFT / f"{time.time():.0f}"
        base.parent.mkdir(exist_ok=True)
        arguments = ["-q", "--basetemp", str(base), *settings["pytest_add_cli_args"]]
        tests = settings["pytest_add_cli_args_test_selection"]
        return pytest.main([*arguments, *tests], [Trials(here, todo, limit_s, jobs)])
    finally:
        os.chdir(here)


def report(of: Sequence[Mutant]) -> bool:
    """Each survivor that is not explained, and the score of each package; whether an explanation speaks of nobody."""
    explained = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["survivor"]
    counts, spoken = Counter[tuple[str, str]](), set[int]()
    for mutant in of:
        fate = mutant.fate
        if fate not in ("untried", "noticed"):
            speaking = [n for n, entry in enumerate(explained) if mutant.is_of(entry)]
            spoken.update(speaking)
            fate = "explained" if speaking else fate
        counts.update([(mutant.package, fate), ("all", fate)])
        if fate in ("shown", "unnoticed", "unreached"):
            was, now = mutant.change()
            print(f"\n{mutant.name}: {fate}\n  - {was}\n  + {now}")
    fates = ["untried", "noticed", "explained", "shown", "unnoticed", "unreached"]
    print("\n" + f"{'package':16}" + "".join(f"{fate:>11}" for fate in fates) + f"{'noticed':>10}{'or explained':>14}")
    for package in [*sorted({mutant.package for mutant in of}), "all"]:
        numbers = [counts[package, fate] for fate in fates]
        total = max(1, sum(numbers[1:]))
        shares = f"{numbers[1] / total:10.1%}{(numbers[1] + numbers[2]) / total:14.1%}"
        print(f"{package:16}" + "".join(f"{number:11,}" for number in numbers) + shares)
    idle = [entry for n, entry in enumerate(explained) if n not in spoken] if not counts["all", "untried"] else []
    for entry in idle:
        print(f"survivors.toml explains what nobody is: {entry['place']}: - {entry['was']} + {entry['now']}")
    return bool(idle)


if __name__ == "__main__":
    sys.exit(main())
