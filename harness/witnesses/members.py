"""Members that faults hit, from the view of the group's coordinator."""

from __future__ import annotations

from collections.abc import Collection

from fencepost.interfaces import FaultContext, Target
from fencepost.witnesses.base import Observation

ROUND_S = 60.0  # a rebalance may wait this long for a member that is gone: sessions last 45 s by default


def ids(world: FaultContext, target: Target) -> dict[int, str]:
    """The member id of each target, as it reported last; empty: it has not reported one."""
    reported = {member.index: member.member_id for member in world.view().members}
    return {member: reported[member] for member in target.members}


def outsiders(world: FaultContext, target: Target) -> list[str]:
    """The targets that are not in the group."""
    there = world.cluster.admin.describe(world.group).members
    return [f"member-{m}" for m, member_id in ids(world, target).items() if member_id not in there]


def subscribed(world: FaultContext, target: Target, topics: Collection[str]) -> Observation:
    """Whether the coordinator lists exactly these topics as the subscription of each target."""
    there, expected = world.cluster.admin.describe(world.group).members, frozenset(topics)
    found = {f"member-{m}": there.get(member_id) for m, member_id in ids(world, target).items()}
    listed = {name: sorted(one.topics) for name, one in found.items() if one and one.topics is not None}
    missing = [f"the coordinator lists no subscription of {name}" for name in found if name not in listed]
    missing += [f"{name} subscribes to {', '.join(has)}" for name, has in listed.items() if {*has} != expected]
    what = f"for the coordinator {', '.join(listed) or 'nobody'} subscribes to {', '.join(sorted(expected))}"
    return Observation("; ".join(missing), what, {"topics": listed})


def takes_part(world: FaultContext, member: int, protocol: str) -> Observation:
    """Whether the coordinator lists the member with this protocol, ``classic`` or ``consumer``."""
    group, name = world.cluster.admin.describe(world.group), f"member-{member}"
    (member_id,) = ids(world, Target(members=(member,))).values()
    found = group.members[member_id].protocol if member_id in group.members else ""
    what = f"for the coordinator {name} uses the protocol {found or 'of no member'}"
    data = {"group": group.protocol, "member": found, "of": sorted(one.protocol for one in group.members.values())}
    return Observation(
        "" if found == protocol else f"{what}, not {protocol}", f"{what}, in a group that is {group.protocol}", data
    )
