"""Planted bugs in clients: they send requests to the cluster that differ from their program's calls.

``forgotten-topic``
    Once, some time after the warm-up, subscribes to only the first of its topics.
``restless``
    Changes its subscription again and again between the first of its topics and all of them.
``forgotten-name``
    Joins without its ``group.instance.id``.
``unsent-commit``
    A few times reports a commit as accepted that it never sent.
``swallowed-refusal``
    A few times sends a commit that the broker refuses (its metadata is too long), and reports it as accepted.
``ignored-fence``
    Once commits with a consumer that is not a member of the group, reports the error, and continues as before.
``late-retry``
    Sends each asynchronous commit again after the following one, as if the first attempt had no answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping

from fencepost_member import adapters
from fencepost_member.adapters import ClientListener, Record, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.planted_bugs.bug_trigger import ALWAYS
from fencepost_member.planted_bugs.clients import FaultyClient

TOO_MUCH = "x" * 5000  # bytes of metadata; brokers accept 4,096 (offset.metadata.max.bytes)


class ForgottenTopic(FaultyClient):
    """The bug ``forgotten-topic``, see the module."""

    times = 1
    _all = True

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        if self._due:
            self._turns.fired()
            self._all = not self._all
            topics = sorted(self._config.topics)
            self._library.subscribe(topics if self._all else topics[:1])
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]


def forgotten_name(config: MemberConfig, listener: ClientListener) -> Any:
    """The bug ``forgotten-name``, see the module."""
    return adapters.connect(replace(config, instance_id=None), listener)


class Restless(ForgottenTopic):
    """The bug ``restless``, see the module."""

    times = ALWAYS


class UnsentCommit(FaultyClient):
    """The bug ``unsent-commit``, see the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Adapter``."""
        if not self._due:
            return self._library.commit(offsets)  # type: ignore[no-any-return]
        self._turns.fired()
        return dict.fromkeys(offsets, "")


class SwallowedRefusal(UnsentCommit):
    """The bug ``swallowed-refusal``, see the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Adapter``."""
        if self._due:
            self._library.commit(offsets, TOO_MUCH)
        return super().commit(offsets)


class IgnoredFence(FaultyClient):
    """The bug ``ignored-fence``, see the module."""

    times = 1

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Adapter``."""
        if not self._due:
            return self._library.commit(offsets)  # type: ignore[no-any-return]
        self._turns.fired()
        stranger = adapters.connect(replace(self._config, instance_id=None), self)
        try:
            return stranger.commit(offsets)  # type: ignore[no-any-return]
        finally:
            stranger.close()


class LateRetry(FaultyClient):
    """The bug ``late-retry``, see the module."""

    _last: Mapping[Tp, int] = {}

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """See ``AsyncCommit``."""
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
