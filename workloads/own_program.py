"""A program of the user's: what producers write for it, and by which rule it is done with a record."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.interfaces import Promise
from fencepost.model import Inventory, serialization
from fencepost.model.clients import BLACK_BOX, VERIFIABLE
from fencepost.workloads._common import Load, at_least_once, check_options
from fencepost_member.config import EFFECT, PROCESSED, TOLD

UNKNOWN = "unknown"


@dataclass(frozen=True)
class OwnProgram(Load):
    """Members are the program of ``Group(command=...)``, recorded from inside of its client library.

    See ``Load`` for what producers write.

    Attributes:
        processed: when the program is done with a record: ``next-poll`` (when it polls again or closes, or commits past
            the record), ``commit`` (when it commits past it, or stores such an offset; for programs that collect
            records over several polls, or hand them to threads), ``told`` (when it says so itself: by a call of
            ``fencepost_member.api.processed``, or as JSON lines), or ``effect`` (when its effect was there in the
            end); of one with the client ``black-box`` it is ``unknown``.
        effects: with ``effect`` what tells effects, ``module:function``, imported from the current directory:
            ``function(settings)`` gives an iterable of all that took effect so far, each named by its record's
            ``(topic, partition, offset)``, or by the ``seq`` that ``payload`` was given (of one producer). What is
            there twice is told twice. ``settings`` are those of a client of the cluster, in librdkafka's words.
    """

    processed: str = "next-poll"
    effects: str = ""
    rate_hz: float = field(default=200, kw_only=True)

    def __post_init__(self) -> None:
        serialization.settle(self)
        if self.processed not in (*PROCESSED, UNKNOWN):
            raise ScenarioError(f"processed is {self.processed!r}; known rules are {', '.join((*PROCESSED, UNKNOWN))}")
        check_options(self)
        if (self.processed == EFFECT) != bool(self.effects):
            raise ScenarioError(f"processed={EFFECT!r} and effects, the function that tells them, go together")
        if self.rate_hz <= 0:
            raise ScenarioError(f"rate_hz is {self.rate_hz!r}, it must be above 0: a program has its own speed")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        if self.processed == TOLD and VERIFIABLE in {client.name for client in inventory.clients}:
            return f"{VERIFIABLE} does not tell when it is done with a record"
        if (self.processed == UNKNOWN) != bool(silent := inventory.lacks_telling()):
            known = (
                f"say processed={UNKNOWN!r}" if silent else f"processed={UNKNOWN!r} goes with the client {BLACK_BOX}"
            )
            return f"{silent}: {known}" if silent else known
        return "" if inventory.own_program else "own_program goes with a group that has a command, the program"

    def member_config(self, member: int) -> dict[str, Any]:
        """What the instrument goes by."""
        return {"processed": self.processed}

    def promises(self) -> Collection[Promise]:
        """What most programs are meant to keep: at-least-once, one owner, commits of what is done, progress. Of one
        that tells nothing, what brokers see of that; of one whose effects are known, these, too."""
        from fencepost.checkers import Effects, Outside

        if self.processed == UNKNOWN:
            return (Outside(within_s=30),)
        return at_least_once(*((Effects("at-least-once"),) if self.effects else ()))
