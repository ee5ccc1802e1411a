"""The instrument of confluent-kafka's asyncio consumer, which adds to the instrument of the consumer inside it.

The asyncio consumer polls on a pool of threads. A record counts as delivered only when the program's coroutine gets it.
A coroutine that was cancelled meanwhile (by ``asyncio.wait_for``, or at the end of the program) never does, although
the client has stored the offset. Likewise only the coroutine that closes the consumer shows whether an exception is the
reason.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fencepost_member.instrument.python_recorder import replace

OWN = SimpleNamespace()  # the library's own functions


def instrument(library: Any) -> None:
    """Replace the functions in the module, which was just loaded."""
    vars(OWN).update(vars(replace(library.AIOConsumer, Consumer)))


class Consumer:
    """Replaces functions of ``confluent_kafka.aio.AIOConsumer``."""

    _consumer: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        OWN.__init__(self, *args, **kwargs)  # type: ignore[misc]
        self._consumer._fencepost.asynchronous = True

    async def poll(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        message = await OWN.poll(self, *args, **kwargs)
        if message is not None:
            self._consumer._fencepost.returned_records((message,))
        return message

    async def consume(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        messages = await OWN.consume(self, *args, **kwargs)
        return self._consumer._fencepost.returned_list(messages)

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        self._consumer._fencepost.closing()
        return await OWN.close(self, *args, **kwargs)
