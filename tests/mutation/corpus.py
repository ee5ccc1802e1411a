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

from fencepost.checkers.counts import Bounds

STORIES = [*test_kinds.CASES, *test_commit_kinds.CASES]
TELLERS = {"wild": random_histories.wild, "odd": odd_histories.tell}
SEEDS: dict[str, tuple[int, ...]] = {
    "wild": (
        *(0, 5, 10, 19, 25, 30, 50, 51, 82, 100, 118, 126, 129, 131, 145, 155, 170, 172, 184, 189, 195, 221, 222, 240),
        *(245, 252, 254, 269, 270, 272, 278, 279, 283, 286, 295),
    ),
    "odd": (
        *(2, 4, 18, 19, 23, 43, 54, 62, 83, 93, 104, 106, 116, 130, 159, 185, 193, 208, 212, 222, 228, 240, 248, 262),
        *(264, 277, 280, 284, 289, 291),
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
