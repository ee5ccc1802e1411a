"""A store outside Kafka to which members write, and the leases with which they protect its critical sections.

The store is a database (see ``databases``) and serves as evidence: its own order of effects shows which came last,
whatever members believe. A *lease* of a partition has an owner, a time limit, and a token, which increases whenever
another member acquires the lease. The *fence* of a member says how it uses leases:

``none``
    Not at all: it looks up whether the record was applied, processes it, and applies it.
``supervisor``
    Not at all; a supervisor ensures that a stalled member never continues (see ``ExclusiveWrites``).
``lease``
    It does all this within the lease of the partition, and does not check the time limit again before it applies the
    record. A member that stalls for longer than the lease (suspended, or in a long garbage collection) writes at the
    same time as the next holder of the lease.
``token``
    It applies a record and checks the token in one transaction: the store refuses effects with an older token.

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
    """One member's connection to the store. Methods also raise the errors of the database."""

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
        self._held: Dict[Tp, Tuple[int, int]] = {}  # token and end (ns) of the leases that it believes to hold
        self._db = opened(folder)

    def enter(self, tp: Tp) -> bool:
        """Acquire the partition's lease, or renew it after half of its time; wait while another member holds it.

        Returns:
            False: the member was asked to stop meanwhile.

        Raises:
            TimeoutError: another member held the lease for ``ENTER_S``.
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
        """Write the record's effect. False: the store refused it, because another member has acquired the lease."""
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
        """Release the leases of these partitions that the member still holds."""
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
