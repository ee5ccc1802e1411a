"""Histories in which the oracle and the kernel must agree, each a test of its own, so that mutants die early.

The hand-written ones of every kind, each in one of the two protocols, and random ones whose seeds were chosen once
(``python -m mutation.corpus``): as few as together show every kind, cause and excuse that some hundreds show. ``make
test`` compares the same finders over more of them; its name keeps this module out of that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from history import odd_histories, random_histories, test_commit_kinds, test_kinds, test_random_lives
from history.builder import HistoryBuilder
from history.test_kernel_equals_oracle import STRICT, agreed

from fencepost.checkers.facts import Bounds

STORIES = [*test_kinds.CASES, *test_commit_kinds.CASES]
TELLERS = {"wild": random_histories.wild, "odd": odd_histories.tell}
SEEDS: dict[str, tuple[int, ...]] = {
    "wild": (
        *(0, 1, 30, 44, 47, 54, 84, 87, 88, 93, 110, 124, 125, 126, 128, 129, 149, 151, 152, 160, 165, 170, 183, 184),
        *(201, 221, 240, 241, 249, 252, 254, 269, 279, 286),
    ),
    "odd": (
        *(13, 14, 18, 33, 37, 41, 64, 72, 85, 98, 101, 108, 112, 113, 121, 123, 129, 135, 202, 219, 238, 251, 284, 292),
    ),
}
TAME = (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "near-miss"])
@pytest.mark.parametrize("number", range(len(STORIES)))
def test_hand_written(tmp_path: Path, number: int, wrong: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=number % 2 == 1)
    STORIES[number](h, wrong)
    agreed(h.seal(), Bounds())


@pytest.mark.parametrize(("teller", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_random(tmp_path: Path, teller: str, seed: int) -> None:
    agreed(TELLERS[teller](tmp_path, seed), STRICT)


@pytest.mark.parametrize("seed", TAME)
def test_correct(tmp_path: Path, seed: int) -> None:
    test_random_lives.kept_its_promises(random_histories.tame(tmp_path, seed))


def chosen(tell: Callable[[Path, int], Path], among: range) -> list[int]:
    """Seeds that show all that ``among`` them is shown; greedily, so nearly as few as possible."""
    with tempfile.TemporaryDirectory() as folder:
        shown = {
            seed: {(a.kind, a.cause, a.excuse) for a in agreed(tell(Path(folder), seed), STRICT)[0]} for seed in among
        }
    left, seeds = set().union(*shown.values()), []
    while left:
        seeds.append(max(shown, key=lambda seed: len(shown[seed] & left)))
        left -= shown[seeds[-1]]
    return sorted(seeds)


if __name__ == "__main__":
    for teller, tell in TELLERS.items():
        sys.stdout.write(f"{teller}: {chosen(tell, range(300))}\n")
