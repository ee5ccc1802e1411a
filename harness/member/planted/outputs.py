"""Members whose output is wrong on purpose, though they write it in transactions. See ``planted``.

``offsets-first``
    Commits the offsets of a poll by its consumer, does something that takes its time, and commits the transaction.
``offsets-later``
    Commits the transaction of a poll, does something that takes its time, and commits the offsets by its consumer.
``unfenced-offsets``
    Sends the offsets with the name of the group alone, as before KIP-447: nobody sees that the member is out of it.
``shared-transactional-id``
    After a while has the ``transactional.id`` of member 0, as after a careless deploy.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Mapping

from fencepost_member import adapters
from fencepost_member.adapters import Listener, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.planted.turns import EVERY_S, Turns

BETWEEN_S = 2.0


class _Apart:
    """Offsets are no part of the transaction."""

    def __init__(self, config: MemberConfig, adapter: Any, listener: Listener) -> None:
        self._adapter, self._library = adapter, adapter.output(config, listener)
        self.identity, self.settings = adapter.identity, self._library.settings
        self.start, self.write, self.close = self._library.start, self._library.write, self._library.close
        self._between = threading.Event()


class OffsetsFirst(_Apart):
    """See the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Output``."""
        errors = self._adapter.commit(offsets)
        self._between.wait(BETWEEN_S)
        self._library.commit({})
        return errors  # type: ignore[no-any-return]


class OffsetsLater(_Apart):
    """See the module."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Output``."""
        self._library.commit({})
        self._between.wait(BETWEEN_S)
        return self._adapter.commit(offsets)  # type: ignore[no-any-return]


def unfenced_offsets(config: MemberConfig, adapter: Any, listener: Listener) -> Any:
    """See the module."""
    # With the consumer protocol a client that never joined has a name all the same.
    output = adapters.connect(replace(config, protocol="eager"), listener).output(config, listener)
    output.has_left = lambda group: False
    return output


class SharedId:
    """See the module."""

    def __init__(self, config: MemberConfig, adapter: Any, listener: Listener) -> None:
        """See ``_Apart``."""
        self._turns = Turns(Path(config.run) / "events", EVERY_S, times=1)
        self._library = adapter.output(config, listener)
        self._again = partial(adapter.output, replace(config, member=0), listener)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``Output``."""
        errors = self._library.commit(offsets)
        if self._turns.due:
            self._turns.taken()
            self._library.close()
            self._library = self._again()
            self._library.start()
        return errors  # type: ignore[no-any-return]


# Name -> what takes the place of the adapter's own ``output``, in a member that has one; there the others are not.
OUTPUTS: Dict[str, Callable[[MemberConfig, Any, Listener], Any]] = {
    "offsets-first": OffsetsFirst,
    "offsets-later": OffsetsLater,
    "unfenced-offsets": unfenced_offsets,
    "shared-transactional-id": SharedId,
}
