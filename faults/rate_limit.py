"""A rate limit: each connection passes a limited number of bytes per second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.throughput import KB_PER_S_MAX, ProbeLoad, slowed


@dataclass(frozen=True, kw_only=True)
class RateLimit(OnStreams):
    """Limits the bytes per second of each connection. Witness: a probe load of the harness takes as long as
    the limit implies.

    Attributes:
        kb_per_s: thousands of bytes per second, for each connection and each direction that is limited.
    """

    kb_per_s: int = 50
    direction: str = "from"
    seen: ClassVar[str] = (
        "small requests and responses pass at once; large ones are slow and delay later ones on their connection"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.kb_per_s <= KB_PER_S_MAX:
            raise ScenarioError(
                f"found kb_per_s={self.kb_per_s}; use 1 to {KB_PER_S_MAX:g}: a higher limit looks like a busy machine"
            )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Limit the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        load = ProbeLoad.of_rate(self.kb_per_s, self.streams)
        return slowed(world, self.links(world, target), self.streams, load, "bandwidth", {"rate": self.kb_per_s})
