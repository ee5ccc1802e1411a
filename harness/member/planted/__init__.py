"""Members that are wrong on purpose, to show that the checks find what they claim to find. Never a model to follow.

``records`` describes those that treat records wrongly, ``commits`` those that commit wrongly or begin where no commit
sent them, ``progress`` those that stop getting on, ``pools`` those with worker threads, ``outputs`` those that write to
another topic, ``parking`` those that cannot process all (at once), ``clients``, ``requests`` and ``callbacks`` those
whose client is at fault. What they do now and then begins when the run's warm-up is over (``turns``).

One planted bug is no code at all: the commit policy ``before-processing`` under an at-least-once promise.
"""

from __future__ import annotations

from typing import Collection

from fencepost_member.config import PARK, REQUEUE, LoopConfig
from fencepost_member.planted import callbacks, clients, commits, outputs, parking, pools, progress, records, requests

BUGS = {**records.BUGS, **commits.BUGS, **progress.BUGS}  # name -> what takes the place of ``Correct``
CLIENTS = {**clients.CLIENTS, **requests.CLIENTS, **callbacks.CLIENTS}  # name -> what takes the place of the adapter
NAMES = (*BUGS, *CLIENTS)
POOLS = pools.POOLS  # name -> what takes the place of ``Pool``, in a member that has one; there the others are not
OUTPUTS = outputs.OUTPUTS  # likewise, in a member that writes what it makes of records
PARKINGS, LETTERS = parking.PARKINGS, parking.LETTERS  # likewise, in a member that parks what it cannot process
REQUEUES = parking.REQUEUES  # likewise, in one that re-queues it


def known(loop: LoopConfig) -> Collection[str]:
    """The bugs that a member with this loop can have."""
    if loop.workers:
        return POOLS
    if loop.on_failure == PARK:
        return (*PARKINGS, *LETTERS)
    if loop.on_failure == REQUEUE:
        return REQUEUES
    return OUTPUTS if loop.into else NAMES


# What a bug needs of the adapter besides ``Adapter``: its protocols. Who trespasses commits what it is not assigned.
NEEDS = {
    **dict.fromkeys(("seek-back", "seek-loop"), ("Seeks",)),
    **dict.fromkeys(("paused-for-ever", "slow-start", "taken-for-good"), ("Pauses",)),
    **dict.fromkeys(("wrong-start", "once-lost", "stale-backlog"), ("Starts",)),
    **dict.fromkeys(("foreign-commit", "late-commit"), ("Starts", "Trespasses")),
    "ignored-fence": ("Trespasses",),
    "late-retry": ("Defers",),
    "swallowed-refusal": ("Annotates",),
}
