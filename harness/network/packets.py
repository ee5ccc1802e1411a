"""The kernel's packet filter (iptables): rules by which packets are lost between two ends of the cluster."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

from fencepost.errors import FencepostError
from fencepost.interfaces.network import PacketLoss
from fencepost.network.chains import Chain
from fencepost.network.namespaces import Namespace
from fencepost.processes.owner import ProcessOwner
from fencepost.witnesses import raw_tcp_probe

Address = tuple[str, int]
TRIAL: Address = ("127.77.254.254", 9100)  # no cluster uses it
TRIAL_COUNT = 10
NUMBERS = itertools.count(1)  # of rules: all filters of one owner share one chain
# A rule as ``iptables -vS`` shows it: its name, and its packet counter.
RULE = re.compile(r'--comment "?(loss-\d+)"? .*-c (\d+) ')


class PacketFilter:
    """Rules of one owner in one network namespace, separate from its other filters. Satisfies ``Packets``."""

    def __init__(self, owner: ProcessOwner, elsewhere: Namespace | None = None) -> None:
        """Nothing is changed yet.

        Args:
            elsewhere: the namespace of the rules; None: the namespace of this process.
        """
        self._chain = Chain(owner, "packets", elsewhere)
        self._rules: dict[str, str] = {}

    def inside(self, host: str) -> AbstractContextManager[None]:
        """See ``Packets``."""
        return self._chain.inside()

    def lose(self, losses: Sequence[PacketLoss]) -> tuple[str, ...]:
        """Put one rule for each loss before all others, all or none; returns their names in this order.

        Raises:
            ClusterError: iptables is missing, or refused.
        """
        rules = {name: self._rule(name, loss) for loss in losses if (name := f"loss-{next(NUMBERS)}")}
        self._chain.make()
        self._rules |= rules
        self._chain.change(f"-I {self._chain.name} {rule}" for rule in rules.values())
        return tuple(rules)

    def restore(self, names: Collection[str]) -> None:
        """Remove rules, all at once. Removing a rule that does not exist is no error.

        Raises:
            ClusterError: iptables refused.
        """
        self._chain.change(f"-D {self._chain.name} {self._rules[name]}" for name in self.lost() if name in names)

    def lost(self) -> Mapping[str, int]:
        """Number of packets that each present rule of this filter has dropped, by its name.

        Raises:
            ClusterError: iptables refused.
        """
        shown = RULE.findall(self._chain.shown())
        return {name: int(count) for name, count in shown if name in self._rules}

    def _rule(self, name: str, loss: PacketLoss) -> str:
        host, port = loss.endpoint
        where = f"-d {host} -p tcp --dport {port}" if loss.stream == "upstream" else f"-s {host} -p tcp --sport {port}"
        asks = " --syn" if loss.connects else ""
        some = f" -m statistic --mode random --probability {loss.share}" if loss.share < 1 else ""
        return f"{where}{asks}{some} -m comment --comment {name} -j DROP"


def missing_reason() -> str:
    """Why packets cannot be dropped on this machine, as a clause with the remedy; empty: a trial rule dropped some.

    The rule meets only packets of the trial.
    """
    try:
        with ProcessOwner.open() as owner:
            packets = PacketFilter(owner)
            packets.lose([PacketLoss("the trial", TRIAL, "upstream")])
            tried = raw_tcp_probe.lost(TRIAL, "upstream", TRIAL_COUNT)
    except FencepostError as error:
        return str(error)
    if tried.lost < TRIAL_COUNT or tried.control_lost:
        return (
            f"a rule loses {tried.lost} of {TRIAL_COUNT} packets, and {tried.control_lost} others: "
            "is a firewall in the way?"
        )
    return ""
