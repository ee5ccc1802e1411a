"""Capabilities: what a back-end can do on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from fencepost.interfaces import Fault
from fencepost.schedule.plan import Plan, Step

# The capabilities of a back-end, each with a check: it returns what is missing on this machine, with the remedy;
# empty: nothing.
Abilities = Mapping[str, Callable[[], str]]


@runtime_checkable
class HasPacketVariant(Protocol):
    """A fault of proxies that the packet filter can cause as well."""

    def by_packets(self) -> Fault:
        """The same fault, caused by the packet filter."""


def always(*abilities: str) -> Abilities:
    """Capabilities that need nothing but the back-end itself."""
    return dict.fromkeys(abilities, str)


def network(abilities: Abilities, wanted: str = "") -> dict[str, str]:
    """Whether a run's links and packets can be affected, for its report: ``yes``, or ``no`` with the reason.

    ``wanted``: the scenario's ``network``; if set, the result also has which of the two causes a fault that both can.
    """
    reasons = {name: _missing_reason(abilities, name) for name in ("links", "packets")}
    answers = {name: f"no: {why}" if why else "yes" for name, why in reasons.items()}
    return {**answers, "wanted": wanted, "used": _used(wanted, abilities)} if wanted else answers


def with_packet_faults(plan: Plan, wanted: str, abilities: Abilities) -> Plan:
    """The plan with the scenario's ``network``: the packet filter causes the faults that both it and proxies can cause.

    Without a packet filter, the plan stays as it is for ``best``; for ``packets`` the preflight refuses it.
    """
    if _used(wanted, abilities) != "packets":
        return plan
    faults = (
        step.fault.by_packets() if isinstance(step.fault, HasPacketVariant) else step.fault for step in plan.steps
    )
    return replace(plan, steps=tuple(replace(s, fault=fault) for s, fault in zip(plan.steps, faults, strict=True)))


def needed(plan: Plan, *abilities: str) -> bool:
    """Whether a step of the plan needs one of the capabilities."""
    return any(not needs(step).isdisjoint(abilities) for step in plan.steps)


def needs(step: Step) -> frozenset[str]:
    """The capabilities that a step needs. Signals to brokers need one more than signals to members."""
    brokers = step.hits == "brokers" and "signal" in step.fault.needs
    states = [state.needs for state in (step.when, step.until) if state]
    return step.fault.needs.union({"broker-signal"} if brokers else (), *states)


def _used(wanted: str, abilities: Abilities) -> str:
    return "links" if not wanted or (wanted == "best" and _missing_reason(abilities, "packets")) else "packets"


def _missing_reason(abilities: Abilities, name: str) -> str:
    return abilities[name]() if name in abilities else "not with this back-end"
