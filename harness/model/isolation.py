"""Which records of transactions members read: all of them, or only committed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.model.clients import CONFLUENT, KNOWN, LINES, VERIFIABLE
from fencepost.model.settings import ISOLATION

UNCOMMITTED = "read_uncommitted"


def reads(started: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The isolation level of a member's consumer; empty: unknown.

    It is the consumer's own setting, by the detail of the member's ``started`` event, or else the one of the group's
    ``config``, or else the client's default.
    """
    name, own = started.get("client", CONFLUENT), started.get("config")
    if started.get("told_by") == "lines" and name != VERIFIABLE:
        name = LINES  # whatever its library is, its defaults are unknown here
    usual = KNOWN[name].isolation if name in KNOWN else ""
    return str({ISOLATION: usual, **config, **(own if isinstance(own, Mapping) else {})}[ISOLATION])
