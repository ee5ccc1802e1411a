"""A store outside of Kafka that members write to, and the leases by which they enter its critical sections.

It is a database (see ``databases``), and so in the end a witness: its own order of effects says whose came last,
whatever members believe. A *lease* of a partition has an owner, a time limit, and a token, which grows whenever another
member takes it. What a member does about it is its *fence*:

``none``
    Nothing: whether a record was applied already is looked up, then the work is done, then it is applied.
``supervisor``
    The same: somebody else sees to it that whoever stands still never goes on (see ``ExclusiveWrites``).
``lease``
    All of that within the lease of the partition, whose time is not looked at again before the record is applied.
    Whoever stands still for longer (a pause, a long collection of garbage) writes beside the lease's next holder.
``token``
    A record is applied in one transaction with the look at the token: the store refuses what an older one brings.

See Kleppmann, "How to do distributed locking" (2016), and Kafka's own fencing by generation.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Callable, Dict, Set, Tuple

from fencepost_member.config import UNLOCKED
from fencepost_member.databases import opened
from fencepost_member.ownership import Tp

ENTER_S = 60.0
LOOK_EVERY_S = 0.02
NOT_HELD = (0, 0)
_TAKE = (
    "INSERT INTO leases VALUES (%s, %s, %s, %s, %s) ON CONFLICT (topic, partition)"
    " DO UPDATE SET owner = excluded.owner, token = excluded.token, until_ns = excluded.until_ns"
)
_APPLY = 'INSERT INTO effects (topic, partition, "offset", actor, token, written_ns) VALUES (%s, %s, %s, %s, %s, %s)'


class Store:
    """One member's connection. Raises what its database raises."""

    def __init__(
        self,
        folder: Path,
        actor: str,
        fence: str,
        lease_s: float,
        stop: threading.Event,
        now: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """``fence`` is one of ``config.FENCES``; ``stop`` ends waiting; ``now`` must be one clock for all members."""
        self._actor, self._fence, self._lease_ns, self._now = actor, fence, int(lease_s * 1e9), now
        self._stop = stop
        self._held: Dict[Tp, Tuple[int, int]] = {}  # token and end of the leases that it believes to have
        self._db = opened(folder)

    def enter(self, tp: Tp) -> bool:
        """Take the partition's lease, or renew one of which half is over; waits while another member has it.

        Returns:
            False: the member was asked to stop meanwhile.

        Raises:
            TimeoutError: another member did not let go for ``ENTER_S``.
        """
        if self._fence in UNLOCKED or self._now() < self._held.get(tp, NOT_HELD)[1] - self._lease_ns // 2:
            return True
        give_up_ns = self._now() + int(ENTER_S * 1e9)
        while not self._taken(tp):
            if self._now() >= give_up_ns:
                raise TimeoutError("another member held the lease of %s-%d for %g s" % (*tp, ENTER_S))
            if self._stop.wait(LOOK_EVERY_S):
                return False
        return True

    def _taken(self, tp: Tp) -> bool:
        with self._db.alone():
            found = self._db.execute(
                "SELECT owner, token, until_ns FROM leases WHERE topic = %s AND partition = %s", tp
            )
            owner, token, until_ns = found.fetchone() or ("", 0, 0)
            now_ns = self._now()
            if owner != self._actor:
                if until_ns > now_ns:
                    return False
                token += 1
            lease = (token, now_ns + self._lease_ns)
            self._db.execute(_TAKE, (*tp, self._actor, *lease))
        self._held[tp] = lease
        return True

    def applied(self, tp: Tp, offset: int) -> bool:
        """Whether a record has had its effect."""
        query = 'SELECT 1 FROM effects WHERE topic = %s AND partition = %s AND "offset" = %s'
        return self._db.execute(query, (*tp, offset)).fetchone() is not None

    def apply(self, tp: Tp, offset: int) -> bool:
        """The record's effect. False: the store refuses it, as another member took the lease since; it is lost."""
        token = self._held.get(tp, NOT_HELD)[0]
        with self._db.alone():
            if self._fence == "token":
                query = "SELECT token FROM leases WHERE topic = %s AND partition = %s"
                if self._db.execute(query, tp).fetchone()[0] != token:
                    self._held.pop(tp, None)
                    return False
            self._db.execute(_APPLY, (*tp, offset, self._actor, token, self._now()))
        return True

    def leave(self, partitions: Set[Tp]) -> None:
        """Let go of these partitions' leases, as far as they are still its own."""
        for tp in partitions & set(self._held):
            del self._held[tp]
            with self._db.alone():
                mine = (*tp, self._actor)
                self._db.execute(
                    "UPDATE leases SET until_ns = 0 WHERE topic = %s AND partition = %s AND owner = %s", mine
                )

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
