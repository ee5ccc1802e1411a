"""The transactions of a producer: each has a fixed number of records, and one of so many is aborted on purpose.

The outcome of a record is that of its transaction (KIP-98). Committed: the record is acknowledged at the offset that
the client reported. Aborted: a ``read_committed`` consumer must never receive it. If the end of the transaction is
unknown, the outcome of its records is unknown. A transaction that failed is aborted, and the next one begins.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Dict, Optional, Tuple

import confluent_kafka as client

from fencepost_member.adapters.confluent.errors import error_name
from fencepost_member.adapters.confluent.retries import tried
from fencepost_member.config import OPEN_MS, ProducerConfig
from fencepost_member.recording.recorder import ProducerLane

GIVE_UP_S = 45.0  # then the end of a transaction is unknown; brokers elect another coordinator well before


def settings(config: ProducerConfig) -> Dict[str, Any]:
    """Additional client settings: a ``transactional.id`` that only this incarnation has, so it fences no other."""
    if not config.transaction_records:
        return {}
    return {
        "transactional.id": "%s-%s" % (config.actor, os.urandom(8).hex()),
        "transaction.timeout.ms": OPEN_MS,
        "message.timeout.ms": OPEN_MS,  # the client refuses a longer one
    }


class ProducerTransactions:
    """The transactions of one producer, one after the other. Its thread alone calls it."""

    def __init__(self, config: ProducerConfig, producer: Any, lane: ProducerLane, stop: threading.Event) -> None:
        """``producer``: the client. ``stop``: set when a clean end was requested, which may take ``flush_s``."""
        self._config, self._producer, self._lane, self._stop = config, producer, lane, stop
        self._ended = 0
        self._offsets: Dict[int, Optional[int]] = {}  # index of a record in the open transaction -> offset, once known
        self.room = 0  # free places in the open transaction; 0: none is open

    def start(self) -> str:
        """Prepare the producer, before anything else. Returns the name of a fatal error; empty for success."""
        try:
            tried(self._producer.init_transactions, self._within_s)
        except client.KafkaException as error:
            return error_name(error.args[0])
        return ""

    def reserve(self, most: int) -> Tuple[int, str]:
        """Reserve places for up to ``most`` records in the open transaction, or begin one. Returns their number, and
        the name of a fatal error (empty for success)."""
        if not self.room:
            try:
                self._producer.begin_transaction()
            except client.KafkaException as error:
                return 0, error_name(error.args[0])
            self.room = self._config.transaction_records
        reserved = min(most, self.room)
        self.room -= reserved
        return reserved, ""

    def sent(self, index: int) -> None:
        """The client has accepted this record."""
        self._offsets[index] = None

    def written(self, index: int, offset: Optional[int]) -> None:
        """The client reported the record's offset, None on failure; ignored after the transaction has ended."""
        if index in self._offsets and offset is not None and offset >= 0:
            self._offsets[index] = offset

    def end(self) -> Tuple[Dict[str, int], str]:
        """End the open transaction. Returns the number of records by outcome, and the name of an error after which no
        other transaction can begin (empty for success)."""
        end, error = self._end()
        counts = dict.fromkeys(("ok", "aborted", "info"), 0)
        for index, offset in self._offsets.items():
            outcome = end if end != "ok" or offset is not None else "info"  # committed at an unknown offset
            if outcome == "ok":
                self._lane.acked(index, offset or 0)
            else:
                (self._lane.aborted if outcome == "aborted" else self._lane.unknown)(index)
            counts[outcome] += 1
        self._offsets.clear()
        self.room = 0
        return counts, error

    def _end(self) -> Tuple[str, str]:
        """End the transaction. Returns its outcome, and if that is unknown the name of the error.

        A transaction that is aborted on purpose is flushed first, so that its records are in the log.
        """
        self._ended += 1
        every = self._config.abort_every
        try:
            self._producer.flush(self._within_s)
            if not every or self._ended % every:
                tried(self._producer.commit_transaction, self._within_s)
                return "ok", ""
        except client.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                return "info", error_name(error.args[0])
        try:
            tried(self._producer.abort_transaction, self._within_s)
        except client.KafkaException as error:
            return "info", error_name(error.args[0])
        return "aborted", ""

    @property
    def _within_s(self) -> float:
        return self._config.flush_s if self._stop.is_set() else GIVE_UP_S
