"""The protocol states in which the faults of a run were injected: the covered pairs and the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.interfaces import ChecksInventory
from fencepost.model import Inventory, serialization
from fencepost.reports.fault_records import FaultRecord
from fencepost.schedule.protocol_states import LASTING

NONE = "none of these"


@dataclass(frozen=True)
class Grid:
    """How often each fault was injected while a member or the coordinator was in each state.

    Attributes:
        faults: name and number of injections, in the order of the plan.
        rows: a state and, for each fault, the number of injections in that state; None: unknown.
    """

    faults: Sequence[tuple[str, int]]
    rows: Sequence[tuple[str, Sequence[int | None]]]


def grid(faults: Sequence[FaultRecord], protocol: str) -> Grid | None:
    """The grid of a run of a group with this protocol; None if no fault recorded states."""
    known = [fault for fault in faults if fault.states]
    if not known:
        return None
    names = Counter(fault.fault for fault in known)
    there = Inventory(0, 0, {}, protocol=protocol)
    states = [
        serialization.name_of(s) for s in LASTING if not (isinstance(s, ChecksInventory) and s.inventory_problem(there))
    ]
    by_name = {name: [fault.states for fault in known if fault.fault == name] for name in names}
    rows = [(state, [_count([met.get(state) for met in many]) for many in by_name.values()]) for state in states]
    calm = [_count([_calm(met) for met in many]) for many in by_name.values()]
    return Grid(list(names.items()), [*rows, (NONE, calm)])


def _calm(met: Mapping[str, bool | None]) -> bool | None:
    """Whether no state was observed; None: unknown."""
    return False if any(met.values()) else None if None in met.values() else True


def _count(answers: Sequence[bool | None]) -> int | None:
    return None if all(answer is None for answer in answers) else sum(answer is True for answer in answers)
