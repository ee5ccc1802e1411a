"""Random histories that nobody has seen before, for the nightly run: as many as one likes, from ``--chaos-seed``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost.plugin import seed_of


def histories(
    request: pytest.FixtureRequest, folder: Path, tell: Callable[[Path, int], Path], batch: int, count: int
) -> Iterator[Path]:
    """``count`` runs of which each is removed before the next one is told; a failing test's output ends with its own.

    No two batches of a test have one in common.
    """
    first = seed_of(request.node) + batch * count
    request.node.user_properties.append(("histories", count))
    for seed in range(first, first + count):
        run = tell(folder, seed)
        print(f"{tell.__module__}.{tell.__name__}(folder, {seed}) is {run}")
        yield run
        shutil.rmtree(run)
