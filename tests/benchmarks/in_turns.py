"""Runs of several scenarios in turns, so that what else the machine does hits all of them alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fencepost.checkers.tables import Tables, load
from fencepost.clusters import backends
from fencepost.model import Verdict
from fencepost.scenario import Scenario
from fencepost.series import Where, perform


def performed(
    scenarios: Mapping[str, Scenario], seeds: Iterable[int], runs: Path
) -> Iterator[tuple[str, Path, Tables, Verdict]]:
    """Each scenario with each seed, by name: its run folder, what is in it, and its verdict, which is printed."""
    where = Where(runs, backends.named("local"), "local[2]")
    where.ready()
    with where.judge() as spark:
        for seed in seeds:
            for name, scenario in scenarios.items():
                folder, verdict = perform(scenario, scenario.plan(seed), where, spark)
                assert verdict is not None
                print(f"{name}, seed {seed}: {verdict.validity}  {folder}", flush=True)
                yield name, folder, load(folder), verdict
