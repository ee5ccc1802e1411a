"""Removes the containers and networks of an owner that died: a program for the reaper.

``python -m fencepost.clusters.docker.removal TOKEN`` ends with 0 when nothing is left.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from fencepost.clock import eventually
from fencepost.clusters.docker.engine import client
from fencepost.errors import ProvisionError, WaitTimeout

OWNER = "fencepost.owner"  # the label of all containers and networks of an owner; its value is the owner's token
WITHIN_S = 50.0
SEVERAL = 4
# A container that a dying harness requested may appear a little later.
QUIET_LOOKS, LOOK_S = 4, 0.3


def remove_all(token: str) -> None:
    """Remove everything with this owner's token, until nothing new appears.

    Raises:
        ProvisionError: no engine answers.
        WaitTimeout: something is left.
    """
    from docker.errors import APIError

    quiet = 0

    def gone(container: str) -> None:
        with suppress(APIError):  # it is gone, or is being removed
            engine.api.remove_container(container, v=True, force=True)

    def none_is_left() -> bool:
        nonlocal quiet
        mine = {"label": f"{OWNER}={token}"}
        containers = [found["Id"] for found in engine.api.containers(all=True, filters=mine)]
        networks = [found["Id"] for found in engine.api.networks(filters=mine)]
        list(several.map(gone, containers))
        for network in networks:
            with suppress(APIError):  # likewise
                engine.api.remove_network(network)
        quiet = 0 if containers or networks else quiet + 1
        return quiet == QUIET_LOOKS

    with client() as engine, ThreadPoolExecutor(SEVERAL) as several:
        eventually(none_is_left, WITHIN_S, f"the containers of {token} to go", every_s=LOOK_S)


if __name__ == "__main__":
    try:
        remove_all(sys.argv[1])
    except (ProvisionError, WaitTimeout) as error:
        sys.exit(str(error))
