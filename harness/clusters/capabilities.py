"""Abilities: what a back-end can do on this machine, and whether it can perform a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from fencepost.errors import PlanError
from fencepost.interfaces import Fault
from fencepost.schedule.plan import Plan, Step

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

    Where packets cannot be lost, the plan stays as it is with ``best``; otherwise ``check_abilities`` refuses it.
    """
    if _used(wanted, abilities) != "packets":
        return plan
    faults = (step.fault.by_packets() if isinstance(step.fault, AlsoByPackets) else step.fault for step in plan.steps)
    return replace(plan, steps=tuple(replace(s, fault=fault) for s, fault in zip(plan.steps, faults, strict=True)))


def _used(wanted: str, abilities: Abilities) -> str:
    return "links" if not wanted or (wanted == "best" and _lacking(abilities, "packets")) else "packets"


def _lacking(abilities: Abilities, name: str) -> str:
    return abilities[name]() if name in abilities else "not with this back-end"


def check_abilities(plan: Plan, abilities: Abilities, backend: str) -> None:
    """Refuse a plan that needs an ability that the back-end does not have here.

    Raises:
        PlanError: names the step, the ability it needs and the back-end's abilities, or what the machine lacks.
    """
    for need, first in sorted({need: step for step in reversed(plan.steps) for need in needs(step)}.items()):
        if need not in abilities:
            raise PlanError(
                f"{first.named} needs {need}, but the back-end {backend!r} offers only "
                f"{', '.join(sorted(abilities)) or 'nothing'}; choose another back-end or another fault"
            )
        if problem := abilities[need]():
            raise PlanError(f"{first.named} needs {need}, but on this machine {problem}")


def needs(step: Step) -> frozenset[str]:
    """The abilities that a step needs. Signals to brokers need power over brokers; signals to members do not."""
    brokers = step.hits == "brokers" and "signal" in step.fault.needs
    states = [state.needs for state in (step.when, step.until) if state]
    return step.fault.needs.union({"broker-signal"} if brokers else (), *states)
