"""Removes the containers and networks of an owner: a program for the reaper, and a function for a living owner.

``python -m fencepost.clusters.docker.removal TOKEN`` ends with 0 when nothing is left.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from fencepost.clock import eventually
from fencepost.clusters.docker.engine import client
from fencepost.errors import ProvisionError, WaitTimeout

OWNER = "fencepost.owner"  # the label of all containers and networks of an owner; its value is the owner's token
WITHIN_S = 50.0
SEVERAL = 4
# A container that a dying harness requested may appear a little later.
QUIET_LOOKS, LOOK_S = 4, 0.3


def remove(engine: Any, containers: Iterable[str], networks: Iterable[str]) -> None:
    """Remove these, even paused and running ones. No error if one is gone or is being removed."""
    from docker.errors import APIError

    def gone(identity: str) -> None:
        with suppress(APIError):
            engine.api.remove_container(identity, v=True, force=True)

    with ThreadPoolExecutor(SEVERAL) as several:
        list(several.map(gone, containers))
    for network in networks:
        with suppress(APIError):
            engine.api.remove_network(network)


def remove_all(token: str) -> None:
    """Remove everything with this owner's token, until nothing new appears.

    Raises:
        ProvisionError: no engine answers.
        WaitTimeout: something is left.
    """
    quiet = 0

    def none_is_left() -> bool:
        nonlocal quiet
        mine = {"label": f"{OWNER}={token}"}
        containers = [found["Id"] for found in engine.api.containers(all=True, filters=mine)]
        networks = [found["Id"] for found in engine.api.networks(filters=mine)]
        remove(engine, containers, networks)
        quiet = 0 if containers or networks else quiet + 1
        return quiet == QUIET_LOOKS

    with client() as engine:
        eventually(none_is_left, WITHIN_S, f"the containers of {token} to go", every_s=LOOK_S)


if __name__ == "__main__":
    try:
        remove_all(sys.argv[1])
    except (ProvisionError, WaitTimeout) as error:
        sys.exit(str(error))
