"""The coordinator's view of a group whose members report nothing: shares of partitions, and progress."""

from __future__ import annotations

import psutil

from fencepost.interfaces.admin import GroupAdmin


class CoordinatorView:
    """A group's state when the coordinator was last asked.

    Attributes:
        members: how many there are.
        shares: number of partitions of each member that owns any.
        committed: records that the group has committed, counted from the beginning of each partition.
    """

    def __init__(self, admin: GroupAdmin, group: str) -> None:
        """The coordinator was not asked yet."""
        self.shares: list[int] = []
        self.members = self.committed = 0
        self._admin, self._group = admin, group

    def refresh(self) -> None:
        """Ask now. Raises ClusterError, WaitTimeout: no coordinator answers."""
        members = self._admin.describe(self._group).members.values()
        self.members = len(members)
        self.shares = sorted(len(member.owned) for member in members if member.owned)
        self.committed = sum(self._admin.committed(self._group).values())

    def __str__(self) -> str:
        has = ", ".join(map(str, self.shares)) or "none"
        return f"for the coordinator members own {has} of the partitions, and {self.committed:,} records are committed"


def connected(pid: int, bootstrap: str) -> bool:
    """Whether a process itself (not a child of it) has a connection to one of these brokers, or their proxies."""
    ports = {int(place.rpartition(":")[2]) for place in bootstrap.split(",")}
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return False
    return any(connection.raddr and connection.raddr.port in ports for connection in connections)
