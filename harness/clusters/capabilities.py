"""Abilities: what a back-end can do on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from fencepost.interfaces import Fault
from fencepost.schedule.plan import Plan

# What a back-end can do, each with what this machine lacks for it: a clause with the remedy, or nothing.
Abilities = Mapping[str, Callable[[], str]]


@runtime_checkable
class AlsoByPackets(Protocol):
    """A fault of proxies that the packet filter can cause as well."""

    def by_packets(self) -> Fault:
        """The same, caused by the packet filter."""


def always(*abilities: str) -> Abilities:
    """Abilities for which any machine is good enough on which the back-end works at all."""
    return dict.fromkeys(abilities, str)


def network(abilities: Abilities, wanted: str = "") -> dict[str, str]:
    """What can be done to the network of a run, for its report: ``yes``, or ``no`` and what this machine lacks.

    ``wanted``: of the scenario; if it says something, also by what is done what proxies and packets both can do.
    """
    lacks = {name: _lacking(abilities, name) for name in ("links", "packets")}
    told = {name: f"no: {why}" if why else "yes" for name, why in lacks.items()}
    return {**told, "wanted": wanted, "used": _used(wanted, abilities)} if wanted else told


def on_network(plan: Plan, wanted: str, abilities: Abilities) -> Plan:
    """The plan as a scenario's ``network`` wants it: what proxies and packets both can do is done by these.

    Where they cannot be lost, it stays as it is if the ``best`` is wanted; else the
    preflight refuses it.
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
