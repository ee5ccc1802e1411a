"""What members read of what producers write in transactions: all of it, or what is committed alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.model.clients import CONFLUENT, KNOWN, LINES, VERIFIABLE
from fencepost.model.settings import ISOLATION

UNCOMMITTED = "read_uncommitted"


def reads(started: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The isolation level of a member's consumer, or empty: nobody knows.

    It is what that was made with, by the detail of the member's ``started`` event, or what the group's ``config`` says,
    or else its client's default.
    """
    name, told = started.get("client", CONFLUENT), started.get("config")
    if started.get("told_by") == "lines" and name != VERIFIABLE:
        name = LINES  # whatever it consumes with, nobody here knows its defaults
    usual = KNOWN[name].isolation if name in KNOWN else ""
    return str({ISOLATION: usual, **config, **(told if isinstance(told, Mapping) else {})}[ISOLATION])
