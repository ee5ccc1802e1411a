"""Latency: data between members and brokers arrives late, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.throughput import ProbeLoad, slowed

LEAST_MS = 10  # a shorter delay looks like a busy machine


@dataclass(frozen=True, kw_only=True)
class Latency(OnStreams):
    """Delays all data between members and brokers. Witness: the harness's own round trips take that long.

    Attributes:
        delay_ms: the delay in each affected direction; with ``direction="both"`` a round trip takes twice as long.
        jitter_ms: the largest deviation from the delay, earlier or later; the proxy draws it, not the seed.
    """

    delay_ms: int = 200
    jitter_ms: int = 0
    direction: str = "from"
    seen: ClassVar[str] = (
        "requests and responses arrive late; a client repeats a timed-out request on another connection"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.jitter_ms < 0 or self.delay_ms - self.jitter_ms < LEAST_MS:
            raise ScenarioError(
                f"found delay_ms={self.delay_ms} and jitter_ms={self.jitter_ms}; delay_ms minus jitter_ms "
                f"must be at least {LEAST_MS}: a shorter delay looks like a busy machine"
            )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Delay the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        load = ProbeLoad(len(self.streams) * (self.delay_ms - self.jitter_ms) / 1000)
        delay = {"latency": self.delay_ms, "jitter": self.jitter_ms}
        return slowed(world, self.links(world, target), self.streams, load, "latency", delay)
