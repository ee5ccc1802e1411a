"""The proxies between members and brokers: one Toxiproxy process with one proxy per (slot, broker).

The only module that knows the toxiproxy library. It adds: host and port per cluster (the library keeps them on a
class), time-outs (it has none), and errors for every response that is not a success (it ignores most).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from fencepost.clock import eventually
from fencepost.errors import ClusterError
from fencepost.interfaces.process import Process, Spawn
from fencepost.model.endpoint import Endpoint

ANSWER_S = 5.0
FLUSH_S = 30.0  # the server waits 5 s for each piece that a toxic still holds for a client that is gone
START_S = 20.0
Pair = tuple[int, int]


def name_of(slot: int, broker: int) -> str:
    """The name of the proxy of a link, as logs and counters show it."""
    return f"slot-{slot}-broker-{broker}"


def begin(
    spawn: Spawn, server: Path, home: Path, api: Endpoint, links: Mapping[Pair, tuple[Endpoint, Endpoint]]
) -> Process:
    """Start Toxiproxy with these proxies, (slot, broker) -> (listens at, connects to), and return at once.

    Args:
        server: the program. home: the folder of its configuration and log.
    """
    proxies = [
        {"name": name_of(*pair), "listen": str(listen), "upstream": str(upstream), "enabled": True}
        for pair, (listen, upstream) in links.items()
    ]
    config = home / "proxies.json"
    config.write_text(json.dumps(proxies))
    argv = [str(server), "-config", str(config), "-host", api.host, "-port", str(api.port), "-proxy-metrics"]
    return spawn(argv, log=home / "toxiproxy.log", cwd=home)


class Proxies:
    """The links of a running Toxiproxy. Satisfies ``Links``; may be used from several threads."""

    def __init__(self, api: Endpoint, links: Mapping[Pair, tuple[Endpoint, Endpoint]]) -> None:
        self._links = dict(links)
        self._names = itertools.count(1)
        self._api: type[APIConsumer] = type("Api", (APIConsumer,), {"host": api.host, "port": api.port})

    def await_serving(self) -> None:
        """Wait until the server answers and has all proxies.

        Raises:
            WaitTimeout: it does not, within 20 s.
        """

        def serves() -> bool:
            try:
                return len(self._call("get", "/proxies").json()) == len(self._links)
            except ClusterError:
                return False

        eventually(serves, START_S, f"Toxiproxy to serve {len(self._links)} proxies")

    def add_toxic(self, slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        """Put a toxic on one link, always in full (toxicity 1.0: the plan decides about chance); returns its name.

        Raises:
            ClusterError: the proxy refused it or did not answer.
        """
        name = f"{kind}-{stream}-{next(self._names)}"
        toxic = {"name": name, "type": kind, "stream": stream, "toxicity": 1.0, "attributes": dict(attributes)}
        self._call("post", f"/proxies/{self._name(slot, broker)}/toxics", json=toxic)
        return name

    def change_toxic(self, slot: int, broker: int, name: str, attributes: Mapping[str, Any]) -> None:
        """Change attributes of a toxic; others stay. Changing a toxic that does not exist is no error.

        Raises:
            ClusterError: the proxy refused it or did not answer.
        """
        path = f"/proxies/{self._name(slot, broker)}/toxics/{name}"
        self._call("post", path, json={"attributes": dict(attributes)}, missing_is_fine=True)

    def remove_toxic(self, slot: int, broker: int, name: str) -> None:
        """Remove a toxic; returns once the proxy confirmed. Removing a toxic that does not exist is no error.

        Data that it holds is forwarded first; meanwhile the proxy accepts no connection.

        Raises:
            ClusterError: the proxy did not answer.
        """
        path = f"/proxies/{self._name(slot, broker)}/toxics/{name}"
        self._call("delete", path, missing_is_fine=True, within_s=FLUSH_S)

    def set_enabled(self, slot: int, broker: int, enabled: bool) -> None:
        """Close the proxy of one link, which cuts its connections and refuses new ones, or open it again.

        Raises:
            ClusterError: the proxy did not do it.
        """
        self._call("post", f"/proxies/{self._name(slot, broker)}", json={"enabled": enabled})

    def toxics(self, slot: int, broker: int) -> tuple[str, ...]:
        """The names of the toxics on one link, from the server."""
        answer = self._call("get", f"/proxies/{self._name(slot, broker)}/toxics").json()
        return tuple(toxic["name"] for toxic in answer)

    def reset(self) -> None:
        """Open every proxy and remove every toxic, and check the result.

        Raises:
            ClusterError: the server did not do it.
        """
        self._call("post", "/reset", within_s=FLUSH_S)
        proxies = self._call("get", "/proxies").json().items()
        left = [name for name, proxy in proxies if proxy["toxics"] or not proxy["enabled"]]
        if left:
            raise ClusterError(f"Toxiproxy was reset, but these links are still disturbed: {', '.join(left)}")

    def endpoint(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the member in this slot connects to reach this broker."""
        listen = self._link(slot, broker)[0]
        return listen.host, listen.port

    def upstream(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the proxy connects to: the broker's listener of this slot."""
        upstream = self._link(slot, broker)[1]
        return upstream.host, upstream.port

    def _link(self, slot: int, broker: int) -> tuple[Endpoint, Endpoint]:
        if (slot, broker) not in self._links:
            raise ClusterError(f"there is no link between slot {slot} and broker {broker}")
        return self._links[slot, broker]

    def _name(self, slot: int, broker: int) -> str:
        self._link(slot, broker)
        return name_of(slot, broker)

    def _call(
        self, method: str, path: str, *, json: Any = None, missing_is_fine: bool = False, within_s: float = ANSWER_S
    ) -> requests.Response:
        # A HTTP proxy of the user's must not be used for a loopback address.
        options: dict[str, Any] = {"timeout": within_s, "proxies": {"no_proxy": "*"}}
        if json is not None:
            options["json"] = json
        try:
            answer: requests.Response = getattr(self._api, method)(path, **options)
            answer.raise_for_status()
        except NotFound as error:
            if missing_is_fine:
                return requests.Response()
            raise ClusterError(f"Toxiproxy does not know {path}: {_text(error)}") from error
        except (ProxyExists, InvalidToxic) as error:
            raise ClusterError(f"Toxiproxy refused {method} {path}: {_text(error)}") from error
        except requests.RequestException as error:
            raise ClusterError(f"Toxiproxy failed to {method} {path}: {error}") from error
        return answer


def _text(error: Exception) -> str:
    body = error.args[0] if error.args else b""
    return body.decode(errors="replace").strip() if isinstance(body, bytes) else str(body)
