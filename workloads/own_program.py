"""A user's program: the records that producers write for it, and the rule for when a record counts as processed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.interfaces import Promise
from fencepost.model import Inventory, serialization
from fencepost.model.clients import BLACK_BOX, VERIFIABLE
from fencepost.workloads._common import Load, at_least_once, check_options
from fencepost_member.config import EFFECT, PROCESSED, REPORTED

UNKNOWN = "unknown"


@dataclass(frozen=True)
class OwnProgram(Load):
    """Members are the program of ``Group(command=...)``, recorded from inside its client library.

    See ``Load`` for the records that producers write.

    Attributes:
        processed: when a record counts as processed: ``next-poll`` (the program polls again, closes its consumer, or
            commits past the record; but never if it was in a list that a poll returned, and the program did not take it
            out of that list), ``commit`` (it commits past the record, or stores such an offset; for programs
            that collect records over several polls, or pass them to threads), ``told`` (it reports the record: by a
            call of ``fencepost_member.api.processed``, or as a JSON line), or ``effect`` (the record's effect exists
            at the end); with the client ``black-box`` it is ``unknown``.
        effects: with ``effect``, the function that lists effects, ``module:function``, imported from the current
            directory: ``function(settings)`` returns an iterable of all effects so far, each named by its record's
            ``(topic, partition, offset)``, or by the ``seq`` that ``payload`` received (with one producer). An effect
            that exists twice is listed twice. ``settings`` configure a client of the cluster, in librdkafka's terms.
        effects_in_order: the function lists the effects in the order in which they were written: by a sequence number
            of a table, or as a topic with one partition has them. So ``Effects(in_order=True)`` can be judged.
    """

    processed: str = "next-poll"
    effects: str = ""
    effects_in_order: bool = False
    rate_hz: float = field(default=200, kw_only=True)

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.processed not in (*PROCESSED, UNKNOWN):
            raise ScenarioError(f"processed is {self.processed!r}; known rules are {', '.join((*PROCESSED, UNKNOWN))}")
        check_options(self)
        if (self.processed == EFFECT) != bool(self.effects):
            raise ScenarioError(f"processed={EFFECT!r} and effects, the function that lists them, need each other")
        if self.effects_in_order and not self.effects:
            raise ScenarioError("effects_in_order needs effects, the function that lists them in their order")
        if self.rate_hz <= 0:
            raise ScenarioError(f"rate_hz is {self.rate_hz!r}, it must be above 0: a program has its own speed")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        if self.processed == REPORTED and VERIFIABLE in {client.name for client in inventory.clients}:
            return f"{VERIFIABLE} does not report when it has processed a record"
        if (self.processed == UNKNOWN) != bool(silent := inventory.lacks_reports()):
            known = f"use processed={UNKNOWN!r}" if silent else f"processed={UNKNOWN!r} needs the client {BLACK_BOX}"
            return f"{silent}: {known}" if silent else known
        return "" if inventory.own_program else "own_program needs a group with a command, which runs the program"

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of the instrument."""
        return {"processed": self.processed}

    def promises(self) -> Collection[Promise]:
        """The usual promises of programs: at-least-once, one owner, commits of processed records, progress.

        For a black box, only the promises that brokers' records can show; for a program whose effects are known, the
        effects, too.
        """
        from fencepost.checkers import Effects, Outside

        if self.processed == UNKNOWN:
            return (Outside(within_s=30),)
        return at_least_once(*((Effects("at-least-once", self.effects_in_order),) if self.effects else ()))
