"""Committed offsets that an administrator resets: the group goes on from somewhere else than it had come to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import FaultError, ScenarioError, WaitTimeout
from fencepost.interfaces import Injection, Target, World
from fencepost.model import TopicPartition, serialization
from fencepost.witnesses.topics import listed
from fencepost.witnesses.witness import Injected, Sight, witness

PROOF_S = 10.0
PLACES = {"earliest": "begin", "latest": "end"}


@dataclass(frozen=True)
class ResetOffsets:
    """Sets the committed offsets of all of the workload's partitions to where these begin or end, or shifts them.

    It chooses what it hits by itself and has nothing to heal. Kafka refuses it while the group has members, so it waits
    until the last one is out: all are paused past their sessions, or down. Witness: the coordinator tells the offsets
    that were asked for, and told others before. It is a declared act: nobody is blamed for what is read again, or left
    out, because of it.

    Attributes:
        to: ``earliest`` or ``latest``, as of Kafka's own tool for it.
        shift_by: instead of that so many offsets on from what is committed, or back where it is negative, as of that
            tool; within what there is of a partition, and not where nothing is committed. 0: it goes by ``to``.
    """

    to: str = "earliest"
    shift_by: int = 0
    needs: ClassVar[frozenset[str]] = frozenset({"admin", "offsets"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "whoever joins the empty group is told the new offsets and goes on there; a member that was paused hears "
        "UNKNOWN_MEMBER_ID when it wakes, has lost its partitions, and joins again"
    )

    def __post_init__(self) -> None:
        serialization.settle(self)
        if self.to not in PLACES:
            raise ScenarioError(f"found to={self.to!r}, use one of {', '.join(PLACES)}")
        if self.shift_by and self.to != "earliest":
            raise ScenarioError(f"found shift_by={self.shift_by} and to={self.to!r}, use one of them")

    def awaits(self, world: World, target: Target) -> str:
        """See ``Awaits``."""
        if there := len(world.cluster.admin.describe(world.group).members):
            return f"the group has {there} member{'s' if there > 1 else ''}"
        where = (
            f"so far that {self.shift_by:+} changes none"
            if self.shift_by
            else f"where their partitions {PLACES[self.to]}"
        )
        return "" if self._moves(world) else f"all committed offsets are {where}"

    def inject(self, world: World, target: Target) -> Injection:
        """Have the coordinator set them.

        Raises:
            FaultError: the group has members, or all of its offsets are there already.
            ClusterError: the coordinator refused, as when a member has just joined.
        """
        if why := self.awaits(world, target):
            raise FaultError(f"{why}: there is nothing to reset")
        admin, moves = world.cluster.admin, self._moves(world)
        with suppress(WaitTimeout):  # it may have been done all the same
            admin.alter_offsets(world.group, {place: to for place, (_, to) in moves.items()})

        def look() -> Sight:
            now = admin.committed(world.group)
            wrong = [
                f"{place} is committed at {now.get(place, -1)}, not at {to}"
                for place, (_, to) in moves.items()
                if now.get(place, -1) != to
            ]
            far = sum(abs(to - max(before, 0)) for before, to in moves.values())
            where = f"{self.shift_by:+} from before" if self.shift_by else f"where they {PLACES[self.to]}"
            what = f"{listed([*moves])} are committed at {where}, {far} offsets in all"
            return Sight("; ".join(wrong), what, {"offsets": {str(place): [*move] for place, move in moves.items()}})

        return Injected(proven=lambda: witness(look, PROOF_S), acts=tuple(moves))

    def _moves(self, world: World) -> dict[TopicPartition, tuple[int, int]]:
        """What is committed (-1: nothing), and what is to be, of each partition where that is another offset."""
        admin = world.cluster.admin
        committed = admin.committed(world.group)
        wanted = {}
        for topic in world.topics.values():
            begins, ends = admin.start_offsets(topic), admin.end_offsets(topic)
            for p, end in ends.items():
                place = TopicPartition(topic, p)
                if not self.shift_by:
                    wanted[place] = begins[p] if self.to == "earliest" else end
                elif committed.get(place, -1) >= 0:
                    wanted[place] = min(max(committed[place] + self.shift_by, begins[p]), end)
        moves = {place: (committed.get(place, -1), to) for place, to in wanted.items()}
        return {place: (before, to) for place, (before, to) in sorted(moves.items()) if before != to}
