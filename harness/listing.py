"""What ``fencepost list`` shows: every fault, target, workload, check, client and scenario, with a line about it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Any

from fencepost import catalogue, clients, codec


class Kind(StrEnum):
    """What can be listed."""

    FAULTS = "faults"
    TARGETS = "targets"
    WORKLOADS = "workloads"
    CHECKS = "checks"
    CLIENTS = "clients"
    SCENARIOS = "scenarios"


FAMILY = {Kind.FAULTS: "fault", Kind.TARGETS: "target", Kind.WORKLOADS: "workload", Kind.CHECKS: "promise"}


def rows(kind: Kind) -> list[tuple[str, str]]:
    """Name and description of everything of one kind; plug-ins with their options."""
    if kind is Kind.SCENARIOS:
        return [(name, _comment(catalogue.BUILT_IN / f"{name}.toml")) for name in catalogue.built_in()]
    if kind is Kind.CLIENTS:
        return _clients()
    return [
        (name, f"{_sentence(cls.__doc__)}{_seen(cls)}{_options(cls)}")
        for name, cls in codec.known(FAMILY[kind]).items()
    ]


def _clients() -> list[tuple[str, str]]:
    """Their libraries need not be installed."""
    return [(library.name, f"{library.about}{_abilities(library)}") for library in clients.KNOWN.values()]


def _abilities(library: clients.Library) -> str:
    since = {ability: f" (since {release})" for ability, release in library.since.items()}
    protocols = [
        f"{protocol}{since.get(protocol, '')}{': ' if names else ''}{', '.join(names)}"
        for protocol, names in library.assignors.items()
    ]
    extras = ", ".join(sorted(map(str.lower, library.extras)))
    static = f"{clients.STATIC}{since.get(clients.STATIC, '')}"
    releases = f"\nReleases: from {library.oldest} on" if library.oldest != "0" else ""
    return f"{releases}\nProtocols: {'; '.join(protocols)}; {static}" + (f"\nBesides: {extras}" if extras else "")


def _comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()


def _sentence(docstring: str | None) -> str:
    return " ".join((docstring or "").partition("\n\n")[0].split()).replace("``", "")


def _seen(cls: type[Any]) -> str:
    """Of a fault, what brokers and members will see of it."""
    return f"\nSeen: {cls.seen}" if hasattr(cls, "seen") else ""


def _options(cls: type[Any]) -> str:
    options = [
        field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default!r}"
        for field in dataclasses.fields(cls)
    ]
    return f"\nOptions: {', '.join(options)}" if options else ""
