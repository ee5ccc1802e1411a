"""Planted bugs: members with deliberate bugs, which show that the checks find such bugs.

One module per kind of bug: ``records`` (processing of records), ``commits`` (commits and start positions),
``progress`` (members that stop making progress), ``pools`` (worker threads), ``outputs`` (producing to another topic),
``parking`` (dead letters and re-queued records); ``clients``, ``requests`` and ``callbacks`` (bugs of the client
library). A bug that acts repeatedly starts after the run's warm-up (``bug_trigger``).

One planted bug needs no code: the commit policy ``before-processing`` under an at-least-once promise.
"""

from __future__ import annotations

from typing import Collection

from fencepost_member.adapters import AdapterFeature
from fencepost_member.config import PARK, REQUEUE, LoopConfig
from fencepost_member.planted_bugs import (
    callbacks,
    clients,
    commits,
    outputs,
    parking,
    pools,
    progress,
    records,
    requests,
)

# Name of a bug -> its code. ``known`` returns the bugs that a member can have.
BUGS = {**records.BUGS, **commits.BUGS, **progress.BUGS}  # replace ``Behaviour``
CLIENTS = {**clients.CLIENTS, **requests.CLIENTS, **callbacks.CLIENTS}  # replace the adapter
NAMES = (*BUGS, *CLIENTS)
POOLS = pools.POOLS  # replace ``Pool``, in a member with worker threads
OUTPUTS = outputs.OUTPUTS  # replace the adapter's output, in a member that produces its results
PARKINGS, LETTERS = parking.PARKINGS, parking.LETTERS  # replace ``DeadLetter`` or the output, in a member that parks
REQUEUES = parking.REQUEUES  # replace ``DeadLetter``, in a member that re-queues


def known(loop: LoopConfig) -> Collection[str]:
    """The names of the bugs that a member with this loop can have."""
    if loop.workers:
        return POOLS
    if loop.on_failure == PARK:
        return (*PARKINGS, *LETTERS)
    if loop.on_failure == REQUEUE:
        return REQUEUES
    return OUTPUTS if loop.into else NAMES


# The features of the adapter that a bug needs.
NEEDS = {
    **dict.fromkeys(("seek-back", "seek-loop"), (AdapterFeature.SEEKS,)),
    **dict.fromkeys(("paused-for-ever", "slow-start", "taken-for-good"), (AdapterFeature.PAUSES,)),
    **dict.fromkeys(("wrong-start", "once-lost", "stale-backlog"), (AdapterFeature.START_OFFSETS,)),
    **dict.fromkeys(("foreign-commit", "late-commit"), (AdapterFeature.START_OFFSETS, AdapterFeature.COMMIT_UNOWNED)),
    "ignored-fence": (AdapterFeature.COMMIT_UNOWNED,),
    "late-retry": (AdapterFeature.ASYNC_COMMIT,),
    "swallowed-refusal": (AdapterFeature.COMMIT_METADATA,),
}
