"""The faults: one file each. The file's name is the class name in snake case and the name on the command line."""

from fencepost.faults.add_partitions import AddPartitions
from fencepost.faults.black_hole import BlackHole
from fencepost.faults.bounce import Bounce
from fencepost.faults.change_assignor import ChangeAssignor
from fencepost.faults.change_protocol import ChangeProtocol
from fencepost.faults.change_subscription import ChangeSubscription
from fencepost.faults.cut_connections import CutConnections
from fencepost.faults.delete_records import DeleteRecords
from fencepost.faults.drop_packets import DropPackets
from fencepost.faults.duplicate_instance import DuplicateInstance
from fencepost.faults.hold import Hold
from fencepost.faults.kill import Kill
from fencepost.faults.latency import Latency
from fencepost.faults.lose_connects import LoseConnects
from fencepost.faults.lose_packets import LosePackets
from fencepost.faults.move_coordinator import MoveCoordinator
from fencepost.faults.move_leaders import MoveLeaders
from fencepost.faults.partition_brokers import PartitionBrokers
from fencepost.faults.pause import Pause
from fencepost.faults.rate_limit import RateLimit
from fencepost.faults.reassign_coordinator import ReassignCoordinator
from fencepost.faults.recreate_topic import RecreateTopic
from fencepost.faults.refuse import Refuse
from fencepost.faults.remove_member import RemoveMember
from fencepost.faults.reset_offsets import ResetOffsets
from fencepost.faults.scale_in import ScaleIn
from fencepost.faults.scale_out import ScaleOut
from fencepost.faults.slice import Slice
from fencepost.faults.stall import Stall

__all__ = [
    "AddPartitions",
    "BlackHole",
    "Bounce",
    "ChangeAssignor",
    "ChangeProtocol",
    "ChangeSubscription",
    "CutConnections",
    "DeleteRecords",
    "DropPackets",
    "DuplicateInstance",
    "Hold",
    "Kill",
    "Latency",
    "LoseConnects",
    "LosePackets",
    "MoveCoordinator",
    "MoveLeaders",
    "PartitionBrokers",
    "Pause",
    "RateLimit",
    "ReassignCoordinator",
    "RecreateTopic",
    "Refuse",
    "RemoveMember",
    "ResetOffsets",
    "ScaleIn",
    "ScaleOut",
    "Slice",
    "Stall",
]
