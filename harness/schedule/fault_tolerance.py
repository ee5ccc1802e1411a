"""Fault tolerance of a plan: which guarantee of the cluster or the group it breaks, by its planned times.

A process is down while a fault that signals it is in effect (killed, bounced, paused), and for a while after;
permanently where nothing heals it (a scale-in), unless it restarts with a permanent change. Brokers that are cut off
count as down; as they may keep leading, the other brokers may be down for them. Kafka accepts writes with ``acks=all``,
and a group's commits, while ``min.insync.replicas`` of a partition are left. The controller is a separate process that
no fault hits, so its quorum is never at risk.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from typing import Protocol, runtime_checkable

from fencepost.interfaces import Fault
from fencepost.model import Inventory
from fencepost.schedule.plan import PermanentChange, Step
from fencepost.schedule.selectors import AllMembers, Brokers, Member, Members, OneMember

BACK_S = 5.0  # from the undo until a broker is in sync, or a member works again


@runtime_checkable
class PartitionsBrokers(Protocol):
    """A fault that cuts brokers off from the others."""

    @property
    def isolated_leaders(self) -> bool:
        """Whether they keep leading, without followers."""


@dataclass(frozen=True)
class LostGuarantee:
    """A guarantee that a plan breaks. Printed as a sentence.

    Attributes:
        guarantee: the guarantee, as a clause.
        nouns: what is down: ``brokers`` or ``members``.
        from_s: when it may be lost for the first time, in seconds after the group is warm.
        down, spare: how many may be down at a time by the plan, and how many the guarantee allows.
    """

    guarantee: str
    nouns: str
    from_s: float
    down: int
    spare: int

    def __str__(self) -> str:
        return (
            f"{self.guarantee} is not guaranteed: up to {self.down} {self.nouns} are down at a time, "
            f"from {self.from_s:g} s, and {self.spare or 'none'} can be spared"
        )


def lost_guarantees(steps: Collection[Step], inventory: Inventory) -> list[LostGuarantee]:
    """The guarantees that may break while ``steps`` are performed, whatever their selectors choose."""
    kinds = (
        ("brokers", inventory.spare_brokers, "that every partition accepts writes (min.insync.replicas)"),
        ("members", inventory.members - 1, "that one member is left to process"),
    )
    losses = []
    for nouns, spare, guarantee in kinds:
        falls = [step for step in steps if step.hits == nouns and _takes_down(step.fault)]
        down = {step.at_s: _down([o for o in falls if _overlaps(o, step.at_s)], inventory) for step in falls}
        if too_many := {at_s: count for at_s, count in down.items() if count > spare}:
            losses.append(LostGuarantee(guarantee, nouns, min(too_many), max(too_many.values()), spare))
    return losses


def conflicts(step: Step, other: Step, inventory: Inventory) -> bool:
    """Whether both may act on the same process or link at a time: one might hide the other's effect."""
    first, second = sorted((step, other), key=lambda one: one.at_s)
    if first.hits is None or second.hits is None or not _overlaps(first, second.at_s):
        return False
    if "idle members" in (first.hits, second.hits):  # no fault acts on an idle member
        return False
    if first.hits != second.hits:  # the links of a member lead to every broker
        of_members = first if first.hits == "members" else second
        return "links" in of_members.fault.needs
    one, two = _hit(first, inventory), _hit(second, inventory)
    if one is None or two is None:  # a step that waits for a state may begin after the other
        return not _spares(second) or (first.when is not None and not _spares(first))
    return bool(one & two)


def back_s(step: Step) -> float:
    """When the targets of a step work again, by its planned times; never for a process that ends and is not healed."""
    return inf if ends_for_good(step.fault) else step.end_s + BACK_S


def ends_for_good(fault: Fault) -> bool:
    """Whether its members stay ended, unless another step starts them."""
    back = fault.heals or isinstance(fault, PermanentChange)
    return not back and "signal" in fault.needs and "members" in fault.hits


def _takes_down(fault: Fault) -> bool:
    return "signal" in fault.needs or isinstance(fault, PartitionsBrokers)


def _overlaps(step: Step, at_s: float) -> bool:
    return step.at_s <= at_s < back_s(step)


def _spares(step: Step) -> bool:
    """Whether it avoids members that another fault disturbs."""
    return isinstance(step.target, OneMember) or (step.target is None and step.hits == "members")


def _hit(step: Step, inventory: Inventory) -> frozenset[int] | None:
    """The members or brokers that it hits; None: one of them, unknown before it fires."""
    match step.target:
        case Member(index):
            return frozenset({index})
        case Members(numbers) | Brokers(numbers):
            return frozenset(numbers)
        case AllMembers():
            return frozenset(range(inventory.members + inventory.spare_members))
    return None


def _down(steps: Collection[Step], inventory: Inventory) -> int:
    hit = [_hit(step, inventory) for step in steps]
    missed = len(frozenset().union(*filter(None, hit))) + hit.count(None)
    to_stranded = [
        inventory.brokers - (len(cut) if cut else 1)
        for step, cut in zip(steps, hit, strict=True)
        if isinstance(step.fault, PartitionsBrokers) and step.fault.isolated_leaders
    ]
    return max(missed, *to_stranded) if to_stranded else missed
