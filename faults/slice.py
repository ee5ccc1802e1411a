"""Slicing: data arrives in small pieces, so no request or response arrives as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.throughput import KB_PER_S_MAX, ProbeLoad, slowed


@dataclass(frozen=True, kw_only=True)
class Slice(OnStreams):
    """Cuts data into pieces that arrive one after the other. Witness: a probe load of the harness takes
    as long as the pauses imply.

    Attributes:
        piece_bytes: the size of each piece.
        pause_ms: the pause after each piece.
    """

    piece_bytes: int = 100
    pause_ms: int = 2
    seen: ClassVar[str] = "requests and responses arrive piece by piece; they take longer, and no data is lost"

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.piece_bytes, self.pause_ms) < 1 or self.piece_bytes > self.pause_ms * KB_PER_S_MAX:
            raise ScenarioError(
                f"found piece_bytes={self.piece_bytes} and pause_ms={self.pause_ms}; use 1 or more of both, and "
                f"up to {KB_PER_S_MAX:g} bytes for each ms of pause: a higher rate looks like a busy machine"
            )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Slice the data on the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        load = ProbeLoad.of_rate(self.piece_bytes / self.pause_ms, self.streams)
        pieces = {"average_size": self.piece_bytes, "size_variation": 0, "delay": 1000 * self.pause_ms}
        return slowed(world, self.links(world, target), self.streams, load, "slicer", pieces)
