"""Retries calls of a transactional producer."""

from __future__ import annotations

import threading
import time
from typing import Callable

import confluent_kafka as client

CALL_S = 5.0
TRY_EVERY_S = 0.1


def tried(call: Callable[[float], object], within_s: float) -> None:
    """Call ``call`` with its timeout in seconds, and retry it while its error is retriable, for at most ``within_s``.

    Raises KafkaException: the last error.
    """
    give_up_s, pause = time.monotonic() + within_s, threading.Event()
    while True:
        try:
            call(min(CALL_S, within_s))
            return
        except client.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() >= give_up_s:
                raise
            pause.wait(TRY_EVERY_S)
