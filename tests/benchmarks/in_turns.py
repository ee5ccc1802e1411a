"""Runs of several scenarios in turns, so that what else the machine does hits all of them alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.checkers.tables import Tables, load
from fencepost.clusters import backends
from fencepost.model import Verdict
from fencepost.model.settings import PROTOCOLS
from fencepost.repeat.batch import RunOptions, perform
from fencepost.scenario.scenario import Group, Scenario


def groups(config: Mapping[str, Any]) -> dict[str, Group]:
    """A group of confluent-kafka for each protocol, and one with static members, by name."""
    return {
        **{protocol: Group(protocol=protocol, config=config) for protocol in PROTOCOLS},
        "cooperative, static members": Group(protocol="cooperative", config=config, static=True),
    }


def performed(
    scenarios: Mapping[str, Scenario], seeds: Iterable[int], runs: Path
) -> Iterator[tuple[str, Path, Tables, Verdict]]:
    """Each scenario with each seed, by name: its run folder, what is in it, and its verdict, which is printed."""
    where = RunOptions(runs, backends.named("local"), "local[2]")
    with where.judge() as spark:
        for seed in seeds:
            for name, scenario in scenarios.items():
                folder, verdict = perform(scenario, scenario.plan(seed), where, spark)
                assert verdict is not None
                print(f"{name}, seed {seed}: {verdict.validity}  {folder}", flush=True)
                yield name, folder, load(folder), verdict


def by_name(found: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """What was found of all turns, together."""
    together = defaultdict(list)
    for name, one in found:
        together[name].append(one)
    return dict(together)


def medians(found: Iterable[Any]) -> Any:
    """Of some named tuples of numbers the one of the medians of each."""
    those = list(found)
    return type(those[0])(*map(median, zip(*those, strict=True)))
