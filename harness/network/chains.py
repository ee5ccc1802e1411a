"""Chains of the kernel's packet filter (iptables) that are an owner's own, into which what this machine sends leads.

One is made for its first rules, and removed with its owner, however that ends. In another network namespace, it gets
what goes to an address and what comes from there, and is gone with the namespace.
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
from fencepost.processes.owner import Owner


class Chain:
    """The chain of one owner in one table and network namespace; in ours whoever comes second finds the one there is.

    Attributes:
        name: as iptables knows it.
    """

    def __init__(self, owner: Owner, mark: str, elsewhere: Namespace | None = None) -> None:
        """Nothing is changed yet.

        Args:
            mark: of ``reaper.CHAINS``: what the table is used for.
            elsewhere: where it is; None: in the namespace of this process.
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
        """In here, this thread is in the namespace."""
        return self._elsewhere.entered() if self._elsewhere else nullcontext()

    def make(self) -> None:
        """Make it, unless it is there.

        Raises:
            ClusterError: iptables is missing, or refused.
        """
        if self._made:
            return
        self._made = True
        if self._mark:
            try:
                self._mark.touch(exist_ok=False)  # first of all, so that whoever cleans up removes what may be there
            except FileExistsError:
                return  # made again it would lose its rules, and by a second hook they would meet each packet twice
        try:
            self.change([f":{self.name} -", *(f"-I {hook}" for hook in self._hooks)])
        except ClusterError as error:
            if not isinstance(error.__cause__, subprocess.TimeoutExpired):
                self._made = False  # it refused, and made nothing
                if self._mark:
                    self._mark.unlink()
            raise

    def change(self, lines: Iterable[str]) -> None:
        """Change its table: all at once, or not at all.

        Raises:
            ClusterError: iptables refused.
        """
        self._run("iptables-restore", "--noflush", text="\n".join([f"*{self._table}", *lines, "COMMIT", ""]))

    def shown(self) -> str:
        """Its rules with what each has met, as ``iptables -vS`` shows them; nothing where it was not made.

        Raises:
            ClusterError: iptables refused.
        """
        return self._run("iptables", "-t", self._table, "-vS", self.name) if self._made else ""

    def _run(self, program: str, *options: str, text: str = "") -> str:
        argv = [program, "-w", str(reaper.LOCK_S), *options]
        env = {**os.environ, reaper.TOKEN_VARIABLE: self._token}  # it ends with us, and changes nothing afterwards
        limit_s = reaper.IPTABLES_S
        try:
            with self.inside():
                return subprocess.run(
                    argv, input=text, env=env, capture_output=True, text=True, timeout=limit_s, check=True
                ).stdout
        except FileNotFoundError as error:
            raise ClusterError("iptables, which loses and redirects packets, is missing: install it") from error
        except subprocess.CalledProcessError as error:
            said = " ".join(error.stderr.split())
            remedy = ": run as root, or give CAP_NET_ADMIN" if "ermi" in said or os.geteuid() else ""
            raise ClusterError(f"iptables refused ({said}){remedy}") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise ClusterError(f"iptables did not do as it should: {error}") from error
