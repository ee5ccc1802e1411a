"""What ``fencepost list`` shows: every fault, workload, check, client and scenario, with a line about it."""

from __future__ import annotations

import dataclasses
import pkgutil
from enum import StrEnum
from pathlib import Path
from typing import Any

from fencepost import catalogue, codec


class Kind(StrEnum):
    """What can be listed."""

    FAULTS = "faults"
    WORKLOADS = "workloads"
    CHECKS = "checks"
    CLIENTS = "clients"
    SCENARIOS = "scenarios"


FAMILY = {Kind.FAULTS: "fault", Kind.WORKLOADS: "workload", Kind.CHECKS: "promise"}


def rows(kind: Kind) -> list[tuple[str, str]]:
    """Name and description of everything of one kind; plug-ins with their options."""
    if kind is Kind.SCENARIOS:
        return [(name, _comment(catalogue.BUILT_IN / f"{name}.toml")) for name in catalogue.built_in()]
    if kind is Kind.CLIENTS:
        return _clients()
    return [(name, f"{_sentence(cls)}{_options(cls)}") for name, cls in codec.known(FAMILY[kind]).items()]


def _clients() -> list[tuple[str, str]]:
    import fencepost_member.adapters as package

    names = [module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")]
    return [(name.replace("_", "-"), "") for name in names]


def _comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()


def _sentence(cls: type[Any]) -> str:
    return " ".join((cls.__doc__ or "").partition("\n\n")[0].split())


def _options(cls: type[Any]) -> str:
    options = [
        field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default!r}"
        for field in dataclasses.fields(cls)
    ]
    return f" Options: {', '.join(options)}." if options else ""
