"""Workloads: the records of producers, the processing by members, and the promises that such a group should keep.

One file each; the class is exported here under its own name. The loop itself runs on the member's side.
"""

from __future__ import annotations

from fencepost.workloads.dead_letters import DeadLetters
from fencepost.workloads.exclusive_writes import ExclusiveWrites
from fencepost.workloads.own_program import OwnProgram
from fencepost.workloads.poll_loop import PollLoop
from fencepost.workloads.requeue import Requeue
from fencepost.workloads.transform import Transform
from fencepost.workloads.worker_pool import WorkerPool

__all__ = ["DeadLetters", "ExclusiveWrites", "OwnProgram", "PollLoop", "Requeue", "Transform", "WorkerPool"]
