"""Shared by faults that bounce members to another rebalance protocol or, with a classic one, to other assignors."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from fencepost.errors import WaitTimeout
from fencepost.history import EventKind
from fencepost.interfaces import Evidence, FaultContext, Injection, Target
from fencepost.interfaces.process import MemberNode
from fencepost.model.impact import ASKED_S
from fencepost.model.settings import STRATEGY
from fencepost.witnesses.base import CallbackInjection, Observation, all_of, witness
from fencepost.witnesses.members import ROUND_S
from fencepost.witnesses.processes import GONE, ProcessIdentity, ended, kill_late

PROOF_S = ROUND_S  # it can join only between two rebalances of the group


class Terms(NamedTuple):
    """The protocol and assignors of a member; ``assignors`` are separated by commas, the preferred one first."""

    protocol: str
    assignors: str = ""

    @classmethod
    def of(cls, member: MemberNode) -> Self | None:
        """The terms of the present or last incarnation of ``member``; None before it reported its start."""
        started: Mapping[str, Any] | None = next((e["detail"] for e in member.reported(EventKind.STARTED)), None)
        if started is None:
            return None
        return cls(str(started["protocol"]), str(started["config"].get(STRATEGY, "")).replace(" ", ""))

    def __str__(self) -> str:
        return self.assignors or f"the protocol {self.protocol}"


@dataclass(frozen=True)
class Bounced:
    """A member (its number and handle), the incarnation that ended, and the terms before and after the bounce."""

    number: int
    member: MemberNode
    life: ProcessIdentity
    before: Terms
    after: Terms

    def begin(self, terms: Terms, stays: bool = False) -> None:
        """Start the next incarnation with ``terms``; with ``stays`` also later ones. Callbacks follow the protocol."""
        (self.member.adopt if stays else self.member.launch)(**terms._asdict())

    def in_group(self, terms: Terms) -> Observation:
        """Whether the member runs with ``terms`` and reported an assignment, which may be empty."""
        life, has = ProcessIdentity.of(self.member), Terms.of(self.member)
        if life.state() == GONE or has != terms:
            return Observation(f"{life} runs with {has or 'no known terms yet'}, not with {terms}")
        missing = "" if self.member.reported(EventKind.ASSIGNED) else f"{life} is not in the group"
        return Observation(missing, f"{life} is in the group with {has}", {"pid": life.pid, **terms._asdict()})


def bounce(
    world: FaultContext,
    target: Target,
    to: Callable[[Terms], Terms],
    seen: Callable[[Bounced], Observation],
    healed: Callable[[Bounced], Observation],
    stays: bool,
) -> Injection:
    """Ask all targets to end cleanly and restart them with changed terms; undoing restarts them with the former ones.

    Args:
        to: maps the present terms of a member to its next ones.
        seen, healed: return whether the member is in the group with the right terms, after the change and after the
            undo.
        stays: the change is permanent: every later incarnation keeps the changed terms, also after a crash.
    """
    bounced = [_stopped(world, number, to) for number in target.members]

    def proven() -> Evidence:
        stopped = witness(lambda: ended([one.life for one in bounced], {0: "cleanly"}), ASKED_S)
        if not stopped.took_effect:
            kill_late([one.life for one in bounced])
            return stopped
        for one in bounced:
            one.begin(one.after, stays)
        return _witness(bounced, seen)

    def undo() -> None:
        for one in bounced:
            one.member.signal(signal.SIGTERM)
        for one in bounced:
            with suppress(WaitTimeout):
                one.member.wait_ended(ASKED_S)
        kill_late(ProcessIdentity.of(one.member) for one in bounced)
        for one in bounced:
            one.begin(one.before)

    if stays:
        return CallbackInjection(proven)
    return CallbackInjection(proven=proven, undo=undo, healed=lambda: _witness(bounced, healed))


def _stopped(world: FaultContext, number: int, to: Callable[[Terms], Terms]) -> Bounced:
    member = world.members[number]
    before = Terms.of(member) or Terms("")
    one = Bounced(number, member, ProcessIdentity.of(member), before, to(before))
    member.signal(signal.SIGTERM)
    return one


def _witness(bounced: Sequence[Bounced], sight: Callable[[Bounced], Observation]) -> Evidence:
    return witness(lambda: all_of({one.member.name: sight(one) for one in bounced}), PROOF_S, every_s=0.05)
