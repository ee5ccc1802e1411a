"""The kernel connects a process to another address than the requested one: a member to its proxy instead of a broker.

The kernel identifies a member by a supplementary group that only its processes have: other programs on this machine may
use the same broker address. Neither the client nor the broker needs to know.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fencepost.errors import ClusterError, FencepostError
from fencepost.model.endpoint import Endpoint
from fencepost.network import packets
from fencepost.network.chains import Chain
from fencepost.processes.owner import ProcessOwner

FIRST_GROUP = 2_077_000_000  # no system assigns such numbers
TRIAL_GROUP = FIRST_GROUP - 1
TRIAL_S = 5.0
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])))"


@dataclass(frozen=True)
class Redirect:
    """A process with the ``group`` (None: any process) that connects to ``there`` is connected to ``instead``.

    Both are addresses of IPv4.
    """

    group: int | None
    there: Endpoint
    instead: Endpoint


def redirect(owner: ProcessOwner, redirects: Iterable[Redirect]) -> Chain:
    """Redirect new connections until the chain is flushed, at the latest until the owner is closed.

    Raises:
        ClusterError: iptables is missing, or refused.
    """
    chain = Chain(owner, "redirects")
    chain.make()
    chain.change(f"-A {chain.name} {_rule(one)}" for one in redirects)
    return chain


def _rule(one: Redirect) -> str:
    of_group = "" if one.group is None else f"-m owner --gid-owner {one.group} --suppl-groups "
    return f"-d {one.there.host} -p tcp --dport {one.there.port} {of_group}-j DNAT --to-destination {one.instead}"


def missing_reason() -> str:
    """Why members' connections cannot be redirected to proxies on this machine, or packets there cannot be dropped, as
    a clause with the remedy; empty: both work. Only a connection of the trial is redirected."""
    host, _ = packets.TRIAL
    try:
        with ProcessOwner.open() as owner, closing(_listening(host)) as proxy, closing(_listening(host)) as there:
            ends = [Endpoint(*one.getsockname()) for one in (there, proxy)]
            redirect(owner, [Redirect(TRIAL_GROUP, *ends)])
            argv = [sys.executable, "-S", "-c", CONNECT, host, str(ends[0].port)]
            try:
                owner.spawn(argv, log=Path(owner.directory, "trial.log"), groups=[TRIAL_GROUP])
            except ClusterError as error:
                return f"processes cannot get a group of their own ({error}): run as root, or give CAP_SETGID"
            proxy.accept()[0].close()
    except TimeoutError:
        return "a connection of a process with its own group is not redirected: is a sandbox in the way?"
    except (FencepostError, OSError) as error:
        return str(error)
    return packets.missing_reason()


def _listening(host: str) -> socket.socket:
    listening = socket.create_server((host, 0))
    listening.settimeout(TRIAL_S)
    return listening
