"""The rows of ``fencepost list``: every fault, target, workload, check, client and scenario, with its description."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any

from fencepost.battery.situations import SITUATIONS
from fencepost.model import clients, serialization
from fencepost.scenario import loader
from fencepost_member.adapters import AdapterFeature


class Kind(StrEnum):
    """The kinds of things that ``fencepost list`` shows."""

    FAULTS = "faults"
    TARGETS = "targets"
    WORKLOADS = "workloads"
    CHECKS = "checks"
    CLIENTS = "clients"
    SCENARIOS = "scenarios"
    SITUATIONS = "situations"


FAMILY = {Kind.FAULTS: "fault", Kind.TARGETS: "target", Kind.WORKLOADS: "workload", Kind.CHECKS: "promise"}


def rows(kind: Kind) -> list[tuple[str, str]]:
    """Name and description of everything of one kind; plug-ins also list their options."""
    if kind is Kind.SCENARIOS:
        return [(name, loader.load(name).about) for name in loader.built_in()]
    if kind is Kind.CLIENTS:
        return _clients()
    if kind is Kind.SITUATIONS:
        return [(one.name, f"{one.title}{' (--quick)' if one.quick else ''}") for one in SITUATIONS]
    return [
        (name, f"{_about(cls)}{_seen(cls)}{_options(cls)}")
        for name, cls in serialization.registry(FAMILY[kind]).items()
    ]


def _clients() -> list[tuple[str, str]]:
    """The clients; their libraries need not be installed."""
    return [(library.name, f"{library.about}{_abilities(library)}") for library in clients.KNOWN.values()]


def _abilities(library: clients.Library) -> str:
    since = {ability: f" (since {release})" for ability, release in library.since.items()}
    protocols = [
        f"{protocol}{since.get(protocol, '')}{': ' if names else ''}{', '.join(names)}"
        for protocol, names in library.assignors.items()
    ]
    also = "; ".join(extra.value for extra in AdapterFeature if extra in library.extras)
    static = f"{clients.STATIC}{since.get(clients.STATIC, '')}"
    releases = f"\nReleases: from {library.oldest} on" if library.oldest != "0" else ""
    features = f"\nMembers can also: {also}" if also else ""
    return f"{releases}\nProtocols: {'; '.join(protocols)}; {static}{features}"


def _about(cls: type[Any]) -> str:
    """The first paragraph of the docstring; for a fault the whole docstring, witness included, up to ``Attributes``."""
    whole = (cls.__doc__ or "").partition("Attributes:")[0]
    about = whole if hasattr(cls, "seen") else whole.partition("\n\n")[0]
    return " ".join(about.split()).replace("``", "`")


def _seen(cls: type[Any]) -> str:
    """For a fault: its consequences for brokers and members."""
    return f"\nSeen: {cls.seen}" if hasattr(cls, "seen") else ""


def _options(cls: type[Any]) -> str:
    options = [
        field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default!r}"
        for field in dataclasses.fields(cls)
    ]
    return f"\nOptions: {', '.join(options)}" if options else ""
