"""What clients with threads of their own call back comes in the order in which it happened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from fencepost_member.adapters.aiokafka import answered_at_once
from fencepost_member.adapters.callback_bridge import CallbackBridge

WITHIN_S = 10.0


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One that runs on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(WITHIN_S)
    loop.close()


def test_what_a_read_has_taken_comes_before_what_is_called_back_after_it(loop: asyncio.AbstractEventLoop) -> None:
    handover, reported = CallbackBridge(), list[str]()
    there, both_wait = asyncio.Event(), threading.Event()

    async def read() -> str:
        await there.wait()
        return "records"

    async def rebalanced() -> None:
        both_wait.set()
        await there.wait()  # which is over in the same turn of the loop, after the read
        handover.submit(lambda: reported.append("revoked"))

    call = Future[str]()
    handover.follow(call)
    for one in (answered_at_once(read(), call), rebalanced()):
        asyncio.run_coroutine_threadsafe(one, loop)
    assert both_wait.wait(WITHIN_S)
    loop.call_soon_threadsafe(there.set)
    assert handover.wait(call, WITHIN_S)
    assert (call.result(), reported) == ("records", [])
    assert not handover.wait(Future(), 0.1)
    assert reported == ["revoked"]


def test_what_a_read_fails_with_is_its_end(loop: asyncio.AbstractEventLoop) -> None:
    async def read() -> None:
        raise ValueError("of its own")

    handover, call = CallbackBridge(), Future[None]()
    asyncio.run_coroutine_threadsafe(answered_at_once(read(), call), loop)
    assert handover.wait(call, WITHIN_S)
    with pytest.raises(ValueError, match="of its own"):
        call.result()


def test_an_earlier_call_that_ends_does_not_end_the_wait_for_another_one() -> None:
    handover, earlier, reported = CallbackBridge(), Future[None](), list[str]()
    assert not handover.wait(earlier, 0)
    earlier.set_result(None)
    handover.submit(lambda: reported.append("revoked"))
    later = Future[None]()
    later.set_result(None)
    assert handover.wait(later, WITHIN_S)
    assert reported == ["revoked"]
