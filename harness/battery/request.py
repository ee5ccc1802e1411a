"""What the user of ``fencepost try`` gives: the command, and what only the user knows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.battery.program import Program
from fencepost.errors import MemberError, ScenarioError
from fencepost.model.clients import BLACK_BOX, LINES
from fencepost_member.config import REPORTED

NOT_INSTRUMENTED = {BLACK_BOX: "unknown", LINES: REPORTED}  # client -> when its records count as processed


@dataclass(frozen=True)
class BatteryRequest:
    """A program, and how it is to be tried.

    Attributes:
        command: starts one member.
        members: of the group. partitions: of each topic.
        topics: created for it; empty: those that it subscribes to.
        client, protocol: of a program that is not instrumented; empty: they are learned.
        image: see ``Group``.
        processed, effects, payload: see ``OwnProgram``.
        session_s: replaces the session time-out of the program; None: its own.
    """

    command: tuple[str, ...]
    members: int = 3
    partitions: int = 12
    topics: tuple[str, ...] = ()
    client: str = ""
    protocol: str = ""
    image: str = ""
    processed: str = ""
    effects: str = ""
    payload: str = ""
    session_s: float | None = None

    def __post_init__(self) -> None:
        if not self.command:
            raise ScenarioError("there is no program: give its command after --, as in: try -- python -m shop.consumer")
        if self.client and self.client not in NOT_INSTRUMENTED:
            raise ScenarioError(
                f"found --client {self.client}; a Python program is recognised, use it only for a program that is not: "
                f"{' or '.join(NOT_INSTRUMENTED)}"
            )
        if self.client and not self.topics:
            raise ScenarioError(f"what a {self.client} program reads cannot be learned: name its topics with --topics")

    @property
    def rule(self) -> str:
        """When a record counts as processed."""
        return self.processed or ("effect" if self.effects else NOT_INSTRUMENTED.get(self.client, "next-poll"))

    def program(self) -> Program | None:
        """A program that is not instrumented; None: it must be learned."""
        if not self.client:
            return None
        return Program(self.client, "", self.protocol or "eager", self.topics, session_s=self.session_s)

    def learned(self, started: Mapping[str, Any], subscribed: Sequence[Mapping[str, Any]]) -> Program:
        """The program whose first consumer reported ``started``, and whose consumers reported ``subscribed``.

        Raises:
            MemberError: it subscribes to a pattern, and no topics were given.
        """
        asked = tuple(dict.fromkeys(str(topic) for event in subscribed for topic in event["topics"]))
        if not self.topics and (patterns := [name for name in asked if name.startswith("^")]):
            raise MemberError(
                f"the program subscribes to the pattern {patterns[0]!r}, and a new cluster has no topic that matches "
                "it: name the topics that should exist, with --topics"
            )
        found = Program(
            client=str(started["client"]),
            version=str(started["client_version"]),
            protocol=str(started["protocol"]),
            topics=self.topics or asked,
            group=next((str(event["group"]) for event in subscribed if event.get("group")), ""),
            settings=dict(started.get("config") or {}),
        )
        return replace(found, session_s=self.session_s)
