"""Committed offsets that an administrator resets: the group does not continue at the offset where it stopped."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import FaultError, ScenarioError, WaitTimeout
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import TopicPartition, serialization
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.topics import listed

PROOF_S = 10.0
PLACES = {"earliest": "begin", "latest": "end"}


@dataclass(frozen=True)
class ResetOffsets:
    """Sets the committed offsets of all the workload's partitions to their beginning or end, or shifts them.

    It chooses its targets itself and has nothing to heal. Kafka refuses it while the group has members, so it waits
    until the group is empty: all members are paused past their sessions, or down. Witness: the coordinator returns the
    requested offsets, and returned others before. It is a declared act: records that are read again or skipped because
    of the reset are excused.

    Attributes:
        to: ``earliest`` or ``latest``, as in Kafka's own tool.
        shift_by: if not 0, replaces ``to``: the number of offsets by which each committed offset moves forward, or back
            if negative, as in that tool; within the range of the partition, and only where an offset is committed.
    """

    to: str = "earliest"
    shift_by: int = 0
    needs: ClassVar[frozenset[str]] = frozenset({"admin", "offsets"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "a member that joins the empty group fetches the new offsets and starts there; a paused member receives "
        "UNKNOWN_MEMBER_ID when it wakes, has lost its partitions, and rejoins"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.to not in PLACES:
            raise ScenarioError(f"found to={self.to!r}; use one of {', '.join(PLACES)}")
        if self.shift_by and self.to != "earliest":
            raise ScenarioError(f"found shift_by={self.shift_by} and to={self.to!r}; use one of them")

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``."""
        if there := len(world.cluster.admin.describe(world.group).members):
            return f"the group has {there} member{'s' if there > 1 else ''}"
        where = (
            f"at a limit of their partition, so that {self.shift_by:+} changes none"
            if self.shift_by
            else f"where their partitions {PLACES[self.to]}"
        )
        return "" if self._moves(world) else f"all committed offsets are {where}"

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Ask the coordinator to set them.

        Raises:
            FaultError: the group has members, or all of its offsets are already there.
            ClusterError: the coordinator refused, as when a member has just joined.
        """
        if why := self.not_ready_reason(world, target):
            raise FaultError(f"{why}: there is nothing to reset")
        admin, moves = world.cluster.admin, self._moves(world)
        with suppress(WaitTimeout):  # the coordinator may have executed the request
            admin.alter_offsets(world.group, {place: to for place, (_, to) in moves.items()})

        def look() -> Observation:
            now = admin.committed(world.group)
            wrong = [
                f"{place} is committed at {now.get(place, -1)}, not at {to}"
                for place, (_, to) in moves.items()
                if now.get(place, -1) != to
            ]
            far = sum(abs(to - max(before, 0)) for before, to in moves.values())
            where = f"{self.shift_by:+} from before" if self.shift_by else f"where they {PLACES[self.to]}"
            what = f"{listed([*moves])} are committed at {where}, {far} offsets in all"
            return Observation(
                "; ".join(wrong), what, {"offsets": {str(place): [*move] for place, move in moves.items()}}
            )

        return CallbackInjection(proven=lambda: witness(look, PROOF_S), acts=tuple(moves))

    def _moves(self, world: FaultContext) -> dict[TopicPartition, tuple[int, int]]:
        """Committed (-1: none) and requested offset of each partition where they differ."""
        admin = world.cluster.admin
        committed = admin.committed(world.group)
        requested = {}
        for topic in world.topics.values():
            begins, ends = admin.start_offsets(topic), admin.end_offsets(topic)
            for p, end in ends.items():
                place = TopicPartition(topic, p)
                if not self.shift_by:
                    requested[place] = begins[p] if self.to == "earliest" else end
                elif committed.get(place, -1) >= 0:
                    requested[place] = min(max(committed[place] + self.shift_by, begins[p]), end)
        moves = {place: (committed.get(place, -1), to) for place, to in requested.items()}
        return {place: (before, to) for place, (before, to) in sorted(moves.items()) if before != to}
