"""A removal by an administrator: the coordinator removes healthy members from the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clock import now_ns
from fencepost.errors import FaultError
from fencepost.interfaces import Evidence, FaultContext, Injection, Target
from fencepost.model import Inventory
from fencepost.witnesses import members
from fencepost.witnesses.base import CallbackInjection


@dataclass(frozen=True)
class RemoveMember:
    """Removes members from the group; they rejoin by themselves. Witness: the coordinator reports each one as removed.

    There is nothing to heal. The coordinator answers once the removal is in its log; under the consumer protocol, a
    member soon rejoins with the same id. (Kafka's tools remove static members by their names, and all members of a
    group at once; both send LeaveGroup requests on behalf of the members.)
    """

    needs: ClassVar[frozenset[str]] = frozenset({"admin"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "the coordinator assigns the member's partitions to others at once; the member gets UNKNOWN_MEMBER_ID at its "
        "next heartbeat or commit, has lost its partitions, and rejoins (with a classic protocol under another id)"
    )

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. The member itself reports its id."""
        return inventory.lacks_reports()

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``."""
        several = [f"member-{m.index}" for m in world.view().members if m.index in target.members and m.consumers[1:]]
        if several:
            return f"{several[0]} has several consumers in the group, and it is unknown which one to remove"
        out = members.outsiders(world, target)
        return f"{out[0]} is not in the group" if out else ""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Ask the coordinator to remove them.

        Raises:
            FaultError: one of them is not in the group.
            ClusterError: the coordinator refused.
        """
        if out := self.not_ready_reason(world, target):
            raise FaultError(f"{out}: there is no member to remove")
        admin, group, ids = world.cluster.admin, world.group, members.ids(world, target)
        removed = {member: admin.remove_member(group, name) for member, name in ids.items()}
        at_ns = now_ns()
        left = [f"member-{m} as {name}" for m, name in ids.items() if removed[m] != name]
        missing = f"the coordinator does not confirm the removal of {', '.join(left)}" if left else ""
        what = f"removed from {group}: {', '.join(f'member-{m} ({name})' for m, name in ids.items())}"
        data = {"member_ids": {f"member-{m}": name for m, name in ids.items()}}
        return CallbackInjection(proven=lambda: Evidence(not missing, at_ns, missing or what, data))
