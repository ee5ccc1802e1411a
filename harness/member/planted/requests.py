"""Clients that are wrong on purpose: they ask the cluster for something else than their program does.

``forgotten-topic``
    After a while subscribes only to the first of its topics.
``restless``
    Changes its mind again and again whether it subscribes to the first of its topics or to all.
``forgotten-name``
    Joins without its static id, as if it had none.
``unsent-commit``
    A few times says that a commit was accepted, and never sent it.
``swallowed-refusal``
    A few times commits in a way that is refused (with more metadata than the broker takes), and says that it was
    accepted.
``ignored-fence``
    Once commits as somebody who is no member of the group; tells the refusal and goes on as if nothing were.
``late-retry``
    Tries each asynchronous commit again behind the one that follows it, as if nobody had answered it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping

from fencepost_member import adapters
from fencepost_member.adapters import Listener, Record, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.planted.clients import Client
from fencepost_member.planted.turns import ALWAYS

TOO_MUCH = "x" * 5000  # bytes of metadata; brokers take 4,096 (offset.metadata.max.bytes)


class ForgottenTopic(Client):
    """See the module."""

    times = 1
    _all = True

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        if self._due:
            self._turns.taken()
            self._all = not self._all
            topics = sorted(self._config.topics)
            self._library.subscribe(topics if self._all else topics[:1])
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]


def forgotten_name(config: MemberConfig, listener: Listener) -> Any:
    """See the module."""
    return adapters.connect(replace(config, instance_id=None), listener)


class Restless(ForgottenTopic):
    """See the module."""

    times = ALWAYS


class UnsentCommit(Client):
    """See the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Adapter``."""
        if not self._due:
            return self._library.commit(offsets)  # type: ignore[no-any-return]
        self._turns.taken()
        return dict.fromkeys(offsets, "")


class SwallowedRefusal(UnsentCommit):
    """See the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Adapter``."""
        if self._due:
            self._library.commit(offsets, TOO_MUCH)
        return super().commit(offsets)


class IgnoredFence(Client):
    """See the module."""

    times = 1

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Adapter``."""
        if not self._due:
            return self._library.commit(offsets)  # type: ignore[no-any-return]
        self._turns.taken()
        stranger = adapters.connect(replace(self._config, instance_id=None), self)
        try:
            return stranger.commit(offsets)  # type: ignore[no-any-return]
        finally:
            stranger.close()


class LateRetry(Client):
    """See the module."""

    _last: Mapping[Tp, int] = {}

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """See ``Defers``."""
        self._library.commit_async(offsets, answered)
        if self._last:
            self._library.commit_async(self._last, lambda errors: None)
        self._last = offsets


CLIENTS = {
    "forgotten-topic": ForgottenTopic,
    "restless": Restless,
    "forgotten-name": forgotten_name,
    "unsent-commit": UnsentCommit,
    "swallowed-refusal": SwallowedRefusal,
    "ignored-fence": IgnoredFence,
    "late-retry": LateRetry,
}
