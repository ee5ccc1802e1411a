"""Steers swarms to pairs of a fault and a protocol state that no run has covered: the empty cells of the grid.

The cells become part of the scenario (``Swarm.towards``) and are stored with it, so that the plan still depends only on
the scenario and the seed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.console.terminal import out
from fencepost.errors import RunFolderError, ScenarioError
from fencepost.history.run_folder import RunFolder
from fencepost.repeat.batch import RunOptions
from fencepost.repeat.replay import EVENTS, fired
from fencepost.reports.formatting import shown
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan
from fencepost.schedule.swarm import Swarm

Cell = tuple[str, str]  # a fault and a state, by their names


def cases(scenario: Scenario, seeds: Sequence[int], where: RunOptions) -> Iterator[tuple[Scenario, Plan]]:
    """A run for each seed, steered to what no earlier run covered; prints the goal.

    Raises:
        ScenarioError: there is no swarm to steer.
    """
    for seed in seeds:
        steered = aim_at_uncovered(
            scenario, covered_cells(where.runs, scenario.group.protocol), where.cluster.abilities
        )
        _announce(steered, where.runs)
        yield steered, steered.plan(seed)


def covered_cells(runs: Path, protocol: str) -> set[Cell]:
    """The cells that the runs in a folder covered, with this protocol of the group; damaged runs are skipped."""
    found: set[Cell] = set()
    for events in runs.glob(f"*/{EVENTS}"):
        run = events.parents[1]
        try:
            if RunFolder.open(run).read_json("scenario.json")["scenario"]["group"]["protocol"] == protocol:
                found |= {
                    (fault["fault"], name)
                    for fault in fired(run)
                    for name, was in (fault["states"] or {}).items()
                    if was
                }
        except (RunFolderError, LookupError, TypeError, AttributeError):
            continue
    return found


def aim_at_uncovered(scenario: Scenario, done: Collection[Cell], abilities: Collection[str]) -> Scenario:
    """The same scenario, but its swarms aim at the cells that are not ``done`` and possible on such a back-end.

    Raises:
        ScenarioError: it has no swarm.
    """

    def aimed(entry: Any) -> Any:
        if isinstance(entry, Swarm):
            every = entry.reachable_cells(scenario.inventory(), abilities)
            left = {fault: tuple(s for s in states if (fault, s) not in done) for fault, states in every.items()}
            return replace(entry, towards={fault: states for fault, states in left.items() if states})
        parts = getattr(entry, "parts", ())
        return replace(entry, parts=tuple(map(aimed, parts))) if parts else entry

    steered = replace(scenario, schedule=tuple(map(aimed, scenario.schedule)))
    if not any(_swarms(steered.schedule)):
        raise ScenarioError(f"scenario {scenario.name!r} has no swarm to steer: write swarm(...) into its schedule")
    return steered


def _swarms(entries: Sequence[Any]) -> Iterator[Swarm]:
    for entry in entries:
        if isinstance(entry, Swarm):
            yield entry
        else:
            yield from _swarms(getattr(entry, "parts", ()))


def _announce(scenario: Scenario, runs: Path) -> None:
    towards = {fault: states for swarm in _swarms(scenario.schedule) for fault, states in swarm.towards.items()}
    cells = sum(map(len, towards.values()))
    out.print(
        f"steers to {cells} pairs of a fault and a protocol state that no run in {shown(runs)} has covered",
        markup=False,
    )
    for fault, states in towards.items():
        out.print(f"  {fault}: {', '.join(states)}", markup=False)
