"""The kernel's packet filter (iptables): rules by which packets are lost between two ends of the cluster.

They are in a chain of the owner's own, into which OUTPUT leads all that this machine sends to itself. It is made for
the first of them, and removed with the owner, however that ends. In another network namespace, the chain gets what goes
to an address and what comes from there, and is gone with the namespace.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from fencepost.clusters import reaper
from fencepost.errors import ClusterError, FencepostError
from fencepost.evidence import segments
from fencepost.network.namespaces import Namespace
from fencepost.network_interfaces import Loss
from fencepost.processes import Owner

Address = tuple[str, int]
TRIAL: Address = ("127.77.254.254", 9100)  # no cluster has it
TRIAL_COUNT = 10
# A rule as ``iptables -vS`` shows it: its name, and the packets that it has met.
RULE = re.compile(r'--comment "?(loss-\d+)"? .*-c (\d+) ')


class PacketFilter:
    """The rules of one owner in one network namespace. Satisfies ``Packets``."""

    def __init__(self, owner: Owner, elsewhere: Namespace | None = None, numbers: Iterator[int] | None = None) -> None:
        """Nothing is changed yet.

        Args:
            elsewhere: where the rules are; None: in the namespace of this process.
            numbers: of the rules, for their names.
        """
        self._token, self._elsewhere = owner.token, elsewhere
        self._chain = chain = reaper.chain_of(owner.token)
        self._hooks = [f"OUTPUT {' '.join(reaper.hook_of(owner.token))}"]
        self._mark: Path | None = owner.directory / reaper.FILTERS
        if elsewhere:
            self._hooks = [f"INPUT -d {elsewhere.host} -j {chain}", f"OUTPUT -s {elsewhere.host} -j {chain}"]
            self._mark = None
        self._made = False
        self._numbers = numbers or itertools.count(1)
        self._rules: dict[str, str] = {}

    def inside(self, host: str) -> AbstractContextManager[None]:
        """See ``Packets``."""
        return self._elsewhere.entered() if self._elsewhere else nullcontext()

    def lose(self, losses: Sequence[Loss]) -> tuple[str, ...]:
        """Put a rule for each ahead of all that are there, all at once or none; returns their names in this order.

        Raises:
            ClusterError: iptables is missing, or refused.
        """
        rules = {name: self._rule(name, loss) for loss in losses if (name := f"loss-{next(self._numbers)}")}
        self._make_chain()
        self._rules |= rules
        self._change(f"-I {self._chain} {rule}" for rule in rules.values())
        return tuple(rules)

    def restore(self, names: Collection[str]) -> None:
        """Take rules away, all at once. Removing what is not there is no error.

        Raises:
            ClusterError: iptables refused.
        """
        self._change(f"-D {self._chain} {self._rules[name]}" for name in self.lost() if name in names)

    def lost(self) -> Mapping[str, int]:
        """How many packets each rule has lost, by its name: all rules that are there.

        Raises:
            ClusterError: iptables refused.
        """
        shown = self._run("iptables", "-vS", self._chain) if self._made else ""
        return {name: int(count) for name, count in RULE.findall(shown)}

    def _rule(self, name: str, loss: Loss) -> str:
        host, port = loss.endpoint
        where = f"-d {host} -p tcp --dport {port}" if loss.stream == "upstream" else f"-s {host} -p tcp --sport {port}"
        asks = " --syn" if loss.connects else ""
        some = f" -m statistic --mode random --probability {loss.share}" if loss.share < 1 else ""
        return f"{where}{asks}{some} -m comment --comment {name} -j DROP"

    def _make_chain(self) -> None:
        if self._made:
            return
        self._made = True
        if self._mark:
            self._mark.touch()  # first of all, so that whoever cleans up removes what may be there
        try:
            self._change([f":{self._chain} -", *(f"-I {hook}" for hook in self._hooks)])
        except ClusterError as error:
            if not isinstance(error.__cause__, subprocess.TimeoutExpired):
                self._made = False  # it refused, and made nothing
                if self._mark:
                    self._mark.unlink()
            raise

    def _change(self, lines: Iterable[str]) -> None:
        """Change the packet filter: all at once, or not at all."""
        self._run("iptables-restore", "--noflush", text="\n".join(["*filter", *lines, "COMMIT", ""]))

    def _run(self, program: str, *options: str, text: str = "") -> str:
        argv = [program, "-w", str(reaper.LOCK_S), *options]
        env = {**os.environ, reaper.TOKEN_VARIABLE: self._token}  # it ends with us, and changes nothing afterwards
        limit_s = reaper.IPTABLES_S
        try:
            with self.inside(""):
                return subprocess.run(
                    argv, input=text, env=env, capture_output=True, text=True, timeout=limit_s, check=True
                ).stdout
        except FileNotFoundError as error:
            raise ClusterError("iptables, which loses packets, is missing: install it") from error
        except subprocess.CalledProcessError as error:
            said = " ".join(error.stderr.split())
            raise ClusterError(f"iptables refused ({said}): run as root, or give CAP_NET_ADMIN") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise ClusterError(f"iptables did not do as it should: {error}") from error


def lacking() -> str:
    """What keeps packets from being lost on this machine, as a clause with the remedy; empty: a trial rule loses some.

    The rule meets nothing but the trial.
    """
    try:
        with Owner.open() as owner:
            packets = PacketFilter(owner)
            packets.lose([Loss("the trial", TRIAL, "upstream")])
            tried = segments.lost(TRIAL, "upstream", TRIAL_COUNT)
    except FencepostError as error:
        return str(error)
    if tried.lost < TRIAL_COUNT or tried.beside:
        return (
            f"a rule loses {tried.lost} of {TRIAL_COUNT} packets, and {tried.beside} others: is a firewall in the way?"
        )
    return ""
