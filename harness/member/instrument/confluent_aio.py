"""The instrument of confluent-kafka's asyncio consumer, on top of that of the consumer within it.

It polls on a pool of threads, so what a poll has returned there is the program's only when its coroutine gets it: one
that was cancelled meanwhile (by ``asyncio.wait_for``, or at the end of the program) never does, and the client has
stored the offset all the same. For the same reason only the coroutine that closes it knows whether an error made it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fencepost_member.instrument.python_tape import replace

OWN = SimpleNamespace()  # what the library has itself


def instrument(library: Any) -> None:
    """Replace them in the module, which has just been loaded."""
    vars(OWN).update(vars(replace(library.AIOConsumer, Consumer)))


class Consumer:
    """What takes the place of functions of ``confluent_kafka.aio.AIOConsumer``."""

    _consumer: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        OWN.__init__(self, *args, **kwargs)  # type: ignore[misc]
        self._consumer._fencepost.asynchronous = True

    async def poll(self, *args: Any, **kwargs: Any) -> Any:
        """As the library has it."""
        message = await OWN.poll(self, *args, **kwargs)
        if message is not None:
            self._consumer._fencepost.came((message,))
        return message

    async def consume(self, *args: Any, **kwargs: Any) -> Any:
        """As the library has it."""
        messages = await OWN.consume(self, *args, **kwargs)
        self._consumer._fencepost.came(messages)
        return messages

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """As the library has it."""
        self._consumer._fencepost.closing()
        return await OWN.close(self, *args, **kwargs)
