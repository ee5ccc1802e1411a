"""A scale-out: idle members start while the others work; if many start at once, it is a join storm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fencepost.clock import now_ns
from fencepost.errors import ScenarioError
from fencepost.history import EventKind
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.interfaces.process import MemberNode
from fencepost.model import Inventory, serialization
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.processes import GONE, ProcessIdentity, pids

START_S = 30.0


@dataclass(frozen=True)
class ScaleOut:
    """Starts idle members, which stay. Witness: a new process of each runs, and its client has subscribed.

    Attributes:
        joined_within_s: if above 0, the witness also waits up to that many seconds for the first assignment of each
            member, which must precede the stop of another member.
    """

    joined_within_s: float = 0.0
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"idle members"})
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = "new members join, and the group rebalances once for all or once for each of them"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.joined_within_s < 0:
            raise ScenarioError(f"found joined_within_s={self.joined_within_s:g}; use 0 (no wait) or more seconds")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. The member itself reports that its client has subscribed."""
        return inventory.lacks_reports()

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Start all of them at once."""
        members, since_ns = [world.members[m] for m in target.members], now_ns()
        for member in members:
            member.launch()
        last = EventKind.ASSIGNED if self.joined_within_s else EventKind.STARTED
        bound_s = START_S + self.joined_within_s
        return CallbackInjection(proven=lambda: witness(lambda: _at_work(members, last, since_ns), bound_s))


def _at_work(members: Sequence[MemberNode], last: EventKind, since_ns: int) -> Observation:
    """Whether each member runs and has reported an event of kind ``last`` that began since ``since_ns``."""
    lives = [ProcessIdentity.of(member) for member in members]
    events = [next((e for e in m.reported(last) if e["begin_ns"] >= since_ns and e["end_ns"]), None) for m in members]
    ill = [f"{life.node.name} has no process" for life in lives if life.state() == GONE]
    late = [f"{m.name} is not {last} yet" for m, event in zip(members, events, strict=True) if event is None]
    data = {"pids": pids(lives), f"{last}_s": [round((e["end_ns"] - since_ns) / 1e9, 3) for e in events if e]}
    missing = "; ".join([*ill, *late]) or ("" if members else "nothing was hit")
    return Observation(missing, f"{last}: {', '.join(map(str, lives))}", data)
