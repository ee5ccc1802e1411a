"""A change of assignor in one bounce, as it must not be done: the new assignor is none that the others know as well.

Done right it takes two bounces of all members: to a list of the new one and the old one, then to the new one alone.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fencepost.evidence.processes import GONE, Life, ended
from fencepost.evidence.witness import Injected, Sight, all_of, witness
from fencepost.history import EventKind
from fencepost.interfaces import Evidence, Injection, Member, Target, World
from fencepost.model import Inventory
from fencepost.settings import ASSIGNORS, STRATEGY

STOP_S = 15.0  # a member finishes, commits and leaves
PROOF_S = 30.0  # it may join only once the group is between two rebalances
REFUSED = "INCONSISTENT_GROUP_PROTOCOL"


@dataclass(frozen=True)
class ChangeAssignor:
    """Bounces members to an assignor that the others do not have. Witness: the client of each new life was refused for
    that, and was assigned nothing; healed: it was bounced back, and was assigned something, or told that there is
    nothing for it.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "the member leaves, and the coordinator refuses its next JoinGroup (INCONSISTENT_GROUP_PROTOCOL) as long as "
        "others are there that do not have its assignor; these take over its partitions"
    )

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        if not ASSIGNORS.get(inventory.protocol, ()):
            return f"with the protocol {inventory.protocol!r} the brokers assign: members have no assignor to change"
        return "" if inventory.members > 1 else "a member that is alone agrees with itself: the group needs another one"

    def inject(self, world: World, target: Target) -> Injection:
        """Ask all of them to end; they come back changed once they have."""
        members = [world.members[m] for m in target.members]
        lives = [Life.of(member) for member in members]
        changes = [_another(member) for member in members]
        for member in members:
            member.signal(signal.SIGTERM)

        def proven() -> Evidence:
            stopped = witness(lambda: ended(lives, {0: "cleanly"}), STOP_S)
            if not stopped.took_effect:
                return stopped
            for member, change in zip(members, changes, strict=True):
                member.launch(**change)
            return witness(lambda: all_of({member.name: _refused(member) for member in members}), PROOF_S)

        return Injected(
            proven=proven,
            undo=lambda: _bounce_back(members),
            healed=lambda: witness(lambda: all_of({member.name: _taken_in(member) for member in members}), PROOF_S),
        )


def _another(member: Member) -> dict[str, str]:
    """An assignor that it does not have, as what its configuration has to say; and how its callbacks go then."""
    (started,) = member.told(EventKind.STARTED)[-1:]
    present = str(started["detail"]["config"][STRATEGY]).split(",")
    every = [{"protocol": protocol, "assignors": name} for protocol, names in ASSIGNORS.items() for name in names]
    return next(one for one in every if one["assignors"] not in map(str.strip, present))


def _refused(member: Member) -> Sight:
    life, told = Life.of(member), [e for e in member.told(EventKind.ERROR) if e["error"] == REFUSED]
    if life.state() == GONE:
        return Sight(f"{member.name} has no process")
    if owned := member.told(EventKind.ASSIGNED):
        return Sight(f"{life} was taken in, and assigned {len(owned[-1]['partitions'])} partitions")
    return Sight("" if told else f"{life} was not refused", f"{life} was refused: {REFUSED}", {"pid": life.pid})


def _bounce_back(members: Sequence[Member]) -> None:
    for member in members:
        member.signal(signal.SIGTERM)
    for member in members:
        member.wait_ended(STOP_S)
        member.start()


def _taken_in(member: Member) -> Sight:
    life = Life.of(member)
    missing = "is gone" if life.state() == GONE else "" if member.told(EventKind.ASSIGNED) else "is not in the group"
    return Sight(f"{life} {missing}" if missing else "", f"{life} is in the group", {"pid": life.pid})
