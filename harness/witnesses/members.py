"""Members that faults hit, as the group's coordinator describes them."""

from __future__ import annotations

from collections.abc import Collection

from fencepost.interfaces import Target, World
from fencepost.witnesses.witness import Sight

ROUND_S = 60.0  # so long a rebalance may wait for who is gone: sessions are 45 s where nothing else is asked


def ids(world: World, target: Target) -> dict[int, str]:
    """What the coordinator calls them, as they told last; empty: they have not told."""
    told = {member.index: member.member_id for member in world.view().members}
    return {member: told[member] for member in target.members}


def outsiders(world: World, target: Target) -> list[str]:
    """Those that are not in the group."""
    there = world.cluster.admin.describe(world.group).members
    return [f"member-{m}" for m, member_id in ids(world, target).items() if member_id not in there]


def subscribed(world: World, target: Target, topics: Collection[str]) -> Sight:
    """Whether the coordinator has exactly these topics as the subscription of each."""
    there, wanted = world.cluster.admin.describe(world.group).members, frozenset(topics)
    found = {f"member-{m}": there.get(member_id) for m, member_id in ids(world, target).items()}
    told = {name: sorted(one.topics) for name, one in found.items() if one and one.topics is not None}
    missing = [f"the coordinator tells nothing of {name}" for name in found if name not in told]
    missing += [f"{name} subscribes to {', '.join(those)}" for name, those in told.items() if {*those} != wanted]
    what = f"for the coordinator {', '.join(told) or 'nobody'} subscribes to {', '.join(sorted(wanted))}"
    return Sight("; ".join(missing), what, {"topics": told})


def takes_part(world: World, member: int, protocol: str) -> Sight:
    """Whether the coordinator has it in the group by this protocol, ``classic`` or ``consumer``."""
    group, name = world.cluster.admin.describe(world.group), f"member-{member}"
    (member_id,) = ids(world, Target(members=(member,))).values()
    found = group.members[member_id].protocol if member_id in group.members else ""
    what = f"for the coordinator {name} takes part by the protocol {found or 'of nobody'}"
    data = {"group": group.protocol, "member": found, "of": sorted(one.protocol for one in group.members.values())}
    return Sight(
        "" if found == protocol else f"{what}, not {protocol}", f"{what}, in a group that is {group.protocol}", data
    )
