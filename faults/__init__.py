"""The faults: one file each, named like its class in snake case, which is its name on the command line."""

from fencepost.faults.black_hole import BlackHole
from fencepost.faults.bounce import Bounce
from fencepost.faults.kill import Kill
from fencepost.faults.move_coordinator import MoveCoordinator
from fencepost.faults.pause import Pause

__all__ = ["BlackHole", "Bounce", "Kill", "MoveCoordinator", "Pause"]
