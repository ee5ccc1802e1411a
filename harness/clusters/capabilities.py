"""Abilities: what a back-end can do on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from fencepost.interfaces import Fault
from fencepost.schedule.plan import Plan

# The abilities of a back-end, each with a check: a clause about what this machine lacks, with the remedy, or nothing.
Abilities = Mapping[str, Callable[[], str]]


@runtime_checkable
class AlsoByPackets(Protocol):
    """A fault of proxies that the packet filter can cause as well."""

    def by_packets(self) -> Fault:
        """The same fault, caused by the packet filter."""


def always(*abilities: str) -> Abilities:
    """Abilities that need nothing of the machine but the back-end itself."""
    return dict.fromkeys(abilities, str)


def network(abilities: Abilities, wanted: str = "") -> dict[str, str]:
    """The possible effects on a run's network, for its report: ``yes``, or ``no`` and what this machine lacks.

    ``wanted``: the scenario's ``network``; if set, also which of proxies and packets performs a fault of both.
    """
    lacks = {name: _lacking(abilities, name) for name in ("links", "packets")}
    answers = {name: f"no: {why}" if why else "yes" for name, why in lacks.items()}
    return {**answers, "wanted": wanted, "used": _used(wanted, abilities)} if wanted else answers


def on_network(plan: Plan, wanted: str, abilities: Abilities) -> Plan:
    """The plan by the scenario's ``network``: faults of both proxies and packets are performed by packets.

    Where packets cannot be lost, the plan stays as it is with ``best``; otherwise the preflight refuses it.
    """
    if _used(wanted, abilities) != "packets":
        return plan
    faults = (step.fault.by_packets() if isinstance(step.fault, AlsoByPackets) else step.fault for step in plan.steps)
    return replace(plan, steps=tuple(replace(s, fault=fault) for s, fault in zip(plan.steps, faults, strict=True)))


def needed(plan: Plan, ability: str) -> bool:
    """Whether a fault of the plan needs the ability."""
    return any(ability in step.fault.needs for step in plan.steps)


def _used(wanted: str, abilities: Abilities) -> str:
    return "links" if not wanted or (wanted == "best" and _lacking(abilities, "packets")) else "packets"


def _lacking(abilities: Abilities, name: str) -> str:
    return abilities[name]() if name in abilities else "not with this back-end"
