"""A rolling bounce of brokers, as of an upgrade: one after the other, each back in sync before the next one goes."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.clock import now_ns
from fencepost.evidence.offsets import TOPIC
from fencepost.evidence.processes import Life, ended, lives_of, reborn, start_again
from fencepost.evidence.witness import Injected, Sight, witness
from fencepost.faults.bounce import CLEAN
from fencepost.interfaces import Evidence, Injection, Target, World

STOP_S = 15.0  # of each: it hands over what it leads
SYNC_S = 60.0  # of each: it serves again, and copies what was written meanwhile


@dataclass(frozen=True)
class RollingBounce:
    """Stops brokers cleanly and starts them again, one after the other, each in sync before the next one is stopped.

    There is nothing to heal: it is over when it is proven, and steps that fall due meanwhile come late. Witness: each
    ended with a clean exit code, a new process of it runs, and it is in sync wherever it keeps a partition of the
    workload or of the offsets topic.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"broker-signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"brokers"})
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "each broker hands its partitions and groups over before it goes, and leads none when it is back; members find "
        "who leads and who coordinates, several times, and stay in"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Ask the first one to end; the others have their turns while the effect is proven."""
        lives = lives_of(world, target)
        lives[0].node.signal(signal.SIGTERM)
        return Injected(proven=lambda: _rolled(world, lives), undo=lambda: _run_again(lives))


def _rolled(world: World, lives: tuple[Life, ...]) -> Evidence:
    """Each in its turn, until one does not end cleanly, or is not back in time. All of them run in the end."""
    turns: list[dict[str, Any]] = []
    try:
        for life in lives:
            if life is not lives[0]:
                life.node.signal(signal.SIGTERM)
            gone = witness(lambda life=life: ended([life], CLEAN), STOP_S)  # type: ignore[misc]
            start_again([life])
            if not gone.took_effect:
                return gone
            back = witness(lambda life=life: _back(world, life), SYNC_S)  # type: ignore[misc]
            turns.append({"broker": life.node.name, "ended_ns": gone.at_ns, "in_sync_ns": back.at_ns})
            if not back.took_effect:
                return back
        names = ", ".join(life.node.name for life in lives)
        return Evidence(True, now_ns(), f"bounced in turn, each in sync before the next: {names}", {"turns": turns})
    finally:
        _run_again(lives)


def _run_again(lives: tuple[Life, ...]) -> None:
    for life in lives:
        life.node.start()


def _back(world: World, life: Life) -> Sight:
    """Whether it runs anew, and is in sync wherever it keeps a replica."""
    born = reborn([life])
    if born.missing:
        return born
    admin, broker = world.cluster.admin, next(b for b, node in world.cluster.brokers.items() if node is life.node)
    behind = [
        f"{topic}-{partition}"
        for topic in (*world.topics.values(), TOPIC)
        for in_sync in [admin.in_sync_replicas(topic)]
        for partition, replicas in admin.replicas(topic).items()
        if broker in replicas and broker not in in_sync.get(partition, ())
    ]
    return Sight(f"{life.node.name} is not in sync in {', '.join(behind)}" if behind else "", born.what)
