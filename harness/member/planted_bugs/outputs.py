"""Planted bugs: members that produce in transactions and commit their offsets wrongly. See ``planted_bugs``.

``offsets-first``
    Commits the offsets of a poll with its consumer, waits ``BETWEEN_S``, and then commits the transaction.
``offsets-later``
    Commits the transaction of a poll, waits ``BETWEEN_S``, and then commits the offsets with its consumer.
``unfenced-offsets``
    Sends the offsets with only the group's name, as before KIP-447: an evicted member is not fenced.
``shared-transactional-id``
    One period after the warm-up, switches to the ``transactional.id`` of member 0, as after a wrong deployment.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Mapping

from fencepost_member import adapters
from fencepost_member.adapters import ClientListener, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.planted_bugs.bug_trigger import EVERY_S, BugTrigger

BETWEEN_S = 2.0


class _SeparateOffsets:
    """The offsets are not part of the transaction."""

    def __init__(self, config: MemberConfig, adapter: Any, listener: ClientListener) -> None:
        self._adapter, self._library = adapter, adapter.output(config, listener)
        self.identity, self.settings = adapter.identity, self._library.settings
        self.start, self.write, self.close = self._library.start, self._library.write, self._library.close
        self._between = threading.Event()


class OffsetsFirst(_SeparateOffsets):
    """The bug ``offsets-first``, see the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Output``."""
        errors = self._adapter.commit(offsets)
        self._between.wait(BETWEEN_S)
        self._library.commit({})
        return errors  # type: ignore[no-any-return]


class OffsetsLater(_SeparateOffsets):
    """The bug ``offsets-later``, see the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Output``."""
        self._library.commit({})
        self._between.wait(BETWEEN_S)
        return self._adapter.commit(offsets)  # type: ignore[no-any-return]


def unfenced_offsets(config: MemberConfig, adapter: Any, listener: ClientListener) -> Any:
    """The bug ``unfenced-offsets``, see the module."""
    # With the consumer protocol a client has a member id even if it never joined.
    output = adapters.connect(replace(config, protocol="eager"), listener).output(config, listener)
    output.has_left = lambda group: False
    return output


class SharedId:
    """The bug ``shared-transactional-id``, see the module."""

    def __init__(self, config: MemberConfig, adapter: Any, listener: ClientListener) -> None:
        """See ``_SeparateOffsets``."""
        self._turns = BugTrigger(Path(config.run) / "events", EVERY_S, times=1)
        self._library = adapter.output(config, listener)
        self._again = partial(adapter.output, replace(config, member=0), listener)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Output``."""
        errors = self._library.commit(offsets)
        if self._turns.due:
            self._turns.fired()
            self._library.close()
            self._library = self._again()
            self._library.start()
        return errors  # type: ignore[no-any-return]


# Name -> replacement of the adapter's ``output``. A member with an output can have these bugs only.
OUTPUTS: Dict[str, Callable[[MemberConfig, Any, ClientListener], Any]] = {
    "offsets-first": OffsetsFirst,
    "offsets-later": OffsetsLater,
    "unfenced-offsets": unfenced_offsets,
    "shared-transactional-id": SharedId,
}
