"""The seed of a chaos test: the option's, the one it failed with, or its own; the same in every process.

pytest-xdist runs tests in several processes, which each read the command line and write at the same time.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import pytest

KEPT = "fencepost/seeds-to-repeat"
SHARED = "chaos_seed"
NODE_ID = pytest.StashKey[str]()  # as the command line expects it: pytest-xdist may append a test's group


def choose(config: pytest.Config) -> None:
    """Draw the seed of all tests if ``--chaos-seed`` is ``random``; a worker uses the seed that its parent drew.

    Raises:
        pytest.UsageError: the option is neither ``random`` nor a number.
    """
    seed = config.getoption("--chaos-seed")
    if seed == "random":
        shared = getattr(config, "workerinput", {}).get(SHARED)
        config.option.chaos_seed = shared or str(secrets.randbelow(2**31))
    elif seed is not None and not seed.isdecimal():
        raise pytest.UsageError(f"--chaos-seed must be a number or 'random', not {seed!r}")


def share(node: Any) -> None:
    """Pass the seed to a worker of pytest-xdist that is about to start."""
    node.workerinput[SHARED] = node.config.getoption("--chaos-seed")


def note(item: pytest.Item) -> None:
    """Remember the node id of a test that was just collected."""
    item.stash[NODE_ID] = item.nodeid


def seed_of(item: pytest.Item) -> int:
    """The seed of a test: the option's, the one it failed with (under ``--lf``), or a hash of its node id."""
    option = item.config.getoption("--chaos-seed")
    if option is not None:
        return int(option)
    cache = getattr(item.config, "cache", None)
    kept = cache.get(_place(item), None) if cache and item.config.getoption("lf", False) else None
    return int.from_bytes(_hash(item)[:4], "big") >> 1 if kept is None else int(kept)


def keep(item: pytest.Item, seed: int | None) -> None:
    """Keep the seed with which a test failed, for ``--lf``. None: the test passed."""
    cache = getattr(item.config, "cache", None)  # absent under -p no:cacheprovider
    if cache:
        cache.set(_place(item), seed)


def _place(item: pytest.Item) -> str:
    """One cache file for each test, because workers write at the same time."""
    return f"{KEPT}/{_hash(item).hex()}"


def _hash(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.stash[NODE_ID].encode()).digest()
