"""Many random histories, each judged; one that fails is shrunk by Hypothesis, and told by the lines that are left.

A history is drawn from its seed alone, and shrunk as it was told, not as it was drawn: as few of its lines as fail in
the same way, with as few records as possible. A line that is left out moves no other one in time, as an act that is not
drawn does: of two finders that differed in a life of 70 lines, this took 100 trials and left 7 lines; of the same draws
made by Hypothesis itself it had left 54 when it gave up after 1,300 trials. Its draws showed no more kinds than seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import HypothesisException

from fencepost.seeds import seed_of
from history.transcript import retold, rounded, script, transcript

Tell = Callable[[Path, int], Path]
Check = Callable[[Path], object]
KEY = b"as it was told"
SHRINKING_S = 600  # of a test that shrinks what fails, at most; Hypothesis gives up after half of it


def fresh(request: pytest.FixtureRequest, batch: int, count: int) -> range:
    """Seeds from ``--chaos-seed`` that nobody has seen before, for the nightly run; no two batches share one."""
    first = seed_of(request.node) + batch * count
    request.node.user_properties.append(("histories", count))
    return range(first, first + count)


def check_each(tell: Tell, folder: Path, seeds: Iterable[int], check: Check) -> None:
    """Check the run of each seed; it is removed before the next one is told.

    Raises:
        AssertionError: a check failed; with the seed, and the lines that are enough for that.
    """
    for seed in seeds:
        run = tell(folder, seed)
        try:
            check(run)
        except Exception as error:
            name = f"{tell.__module__}.{tell.__name__}(folder, {seed})"
            try:
                lines = shrunk(partial(tell, folder, seed), folder, check, type(error))
            except HypothesisException as why:
                lines = [f"(not shrunk: {why!r})"]
            it = "\n    ".join(["", *lines])
            raise AssertionError(f"{name} is {run}; it is enough to tell this, and to seal it:{it}") from error
        shutil.rmtree(run)


def shrunk(tell: Callable[[], object], folder: Path, check: Check, failure: type[Exception]) -> list[str]:
    """The least that must be told for a check to fail in the same way, with as few digits as possible."""
    first, *lines = transcript(tell)
    folder = folder / "shrunk"

    def told(sizes: tuple[int, ...]) -> list[str]:
        return [first.of(first.size), *(line.of(size) for line, size in zip(lines, sizes, strict=True) if size)]

    def fails(script: Iterable[str]) -> bool:
        run = retold(script, folder)
        try:
            check(run)
        except failure:
            return True
        finally:
            shutil.rmtree(folder)
        return False

    whole, one_more = InMemoryExampleDatabase(), 0  # than is drawn: what was kept exactly so counts as shrunk
    whole.save(KEY, choices_to_bytes([*(line.size for line in lines), one_more]))
    how = settings(database=whole, phases=(Phase.reuse, Phase.shrink), deadline=None)
    sizes = st.tuples(*(st.integers(0, line.size) for line in lines))
    least = told(find(sizes, lambda drawn: fails(told(drawn)), settings=how, database_key=KEY))
    fewer = ([rounded(line, digits) for line in least] for digits in (1, 2, 3, 4))
    return script(next((lines for lines in fewer if fails(lines)), least))
