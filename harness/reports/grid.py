"""Which faults met which protocol states: what a run, or many, have tried, and what never."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.interfaces import Names
from fencepost.model import Inventory, serialization
from fencepost.reports.steps import Fault
from fencepost.schedule.protocol_states import LASTING

NONE = "none of these"


@dataclass(frozen=True)
class Grid:
    """How often each fault was injected while somebody was in each state. Faults in the order of the plan.

    Attributes:
        faults: name and how often it was injected.
        rows: a state and, for each fault, how often it met it; None: nobody could tell.
    """

    faults: Sequence[tuple[str, int]]
    rows: Sequence[tuple[str, Sequence[int | None]]]


def grid(faults: Sequence[Fault], protocol: str) -> Grid | None:
    """The grid of a run of a group with this protocol; None where no fault tells of states."""
    told = [fault for fault in faults if fault.states]
    if not told:
        return None
    names = Counter(fault.fault for fault in told)
    there = Inventory(0, 0, {}, protocol=protocol)
    states = [serialization.name_of(s) for s in LASTING if not (isinstance(s, Names) and s.lacking(there))]
    by_name = {name: [fault.states for fault in told if fault.fault == name] for name in names}
    rows = [(state, [_count([met.get(state) for met in many]) for many in by_name.values()]) for state in states]
    calm = [_count([_calm(met) for met in many]) for many in by_name.values()]
    return Grid(list(names.items()), [*rows, (NONE, calm)])


def _calm(met: Mapping[str, bool | None]) -> bool | None:
    """Whether nobody was in any state."""
    return False if any(met.values()) else None if None in met.values() else True


def _count(answers: Sequence[bool | None]) -> int | None:
    return None if all(answer is None for answer in answers) else sum(answer is True for answer in answers)
