"""Chains of the kernel's packet filter (iptables) that belong to one owner and get the packets that this machine sends.

A chain is created for its first rules, and removed with its owner, however that ends. In another network namespace, it
gets the packets to and from one address, and disappears with the namespace.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from fencepost.errors import ClusterError
from fencepost.network.namespaces import Namespace
from fencepost.processes import reaper
from fencepost.processes.owner import ProcessOwner


class Chain:
    """The chain of one owner in one table and network namespace; in ours, a second object reuses the present chain.

    Attributes:
        name: its name in iptables.
    """

    def __init__(self, owner: ProcessOwner, mark: str, elsewhere: Namespace | None = None) -> None:
        """Nothing is changed yet.

        Args:
            mark: a key of ``reaper.CHAINS``: the purpose of the table.
            elsewhere: its namespace; None: the namespace of this process.
        """
        self._token, self._elsewhere = owner.token, elsewhere
        self.name = reaper.chain_of(owner.token)
        self._table = reaper.CHAINS[mark]
        self._hooks = [f"OUTPUT {' '.join(reaper.hook_of(owner.token))}"]
        self._mark: Path | None = owner.directory / mark
        if elsewhere:
            self._hooks = [f"INPUT -d {elsewhere.host} -j {self.name}", f"OUTPUT -s {elsewhere.host} -j {self.name}"]
            self._mark = None
        self._made = False

    def inside(self) -> AbstractContextManager[None]:
        """In the block, this thread is in the chain's namespace."""
        return self._elsewhere.entered() if self._elsewhere else nullcontext()

    def make(self) -> None:
        """Create the chain, unless it exists.

        Raises:
            ClusterError: iptables is missing, or refused.
        """
        if self._made:
            return
        self._made = True
        if self._mark:
            try:
                self._mark.touch(exist_ok=False)  # before the chain, so that a clean-up removes it in any case
            except FileExistsError:
                return  # creating it again would flush its rules and add a second hook
        try:
            self.change([f":{self.name} -", *(f"-I {hook}" for hook in self._hooks)])
        except ClusterError as error:
            if not isinstance(error.__cause__, subprocess.TimeoutExpired):
                self._made = False  # it refused, and created nothing
                if self._mark:
                    self._mark.unlink()
            raise

    def change(self, lines: Iterable[str]) -> None:
        """Change its table: all lines or none.

        Raises:
            ClusterError: iptables refused.
        """
        self._run("iptables-restore", "--noflush", text="\n".join([f"*{self._table}", *lines, "COMMIT", ""]))

    def flush(self) -> None:
        """Remove all its rules.

        Raises:
            ClusterError: iptables refused.
        """
        self.change([f"-F {self.name}"])

    def shown(self) -> str:
        """Its rules with their counters, as ``iptables -vS`` shows them; empty where it was not created.

        Raises:
            ClusterError: iptables refused.
        """
        return self._run("iptables", "-t", self._table, "-vS", self.name) if self._made else ""

    def _run(self, program: str, *options: str, text: str = "") -> str:
        argv = [program, "-w", str(reaper.LOCK_S), *options]
        env = {**os.environ, reaper.TOKEN_VARIABLE: self._token}  # so that it ends with us and changes nothing later
        limit_s = reaper.IPTABLES_S
        try:
            with self.inside():
                return subprocess.run(
                    argv, input=text, env=env, capture_output=True, text=True, timeout=limit_s, check=True
                ).stdout
        except FileNotFoundError as error:
            raise ClusterError("iptables, which loses and redirects packets, is missing: install it") from error
        except subprocess.CalledProcessError as error:
            answer = " ".join(error.stderr.split())
            remedy = ": run as root, or give CAP_NET_ADMIN" if "ermi" in answer or os.geteuid() else ""
            raise ClusterError(f"iptables refused ({answer}){remedy}") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise ClusterError(f"iptables failed: {error}") from error
