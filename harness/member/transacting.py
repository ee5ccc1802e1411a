"""Records of a producer that writes in transactions, each of so many records; each so-many-th is aborted on purpose.

What became of a record is known when its transaction has ended (KIP-98): committed, it is acknowledged at the offset
that the client told; aborted, nobody who reads with ``read_committed`` may ever see it; and where nobody knows how the
transaction ended, nobody knows what became of the record. A transaction that failed is aborted and the next one begins.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Dict, Optional, Tuple

import confluent_kafka as client

from fencepost_member.adapters.confluent_errors import error_name
from fencepost_member.adapters.confluent_trying import tried
from fencepost_member.config import OPEN_MS, ProducerConfig
from fencepost_member.recorder import ProducerLane

GIVE_UP_S = 45.0  # after so long the end of a transaction is unknown; brokers find another coordinator well before


def settings(config: ProducerConfig) -> Dict[str, Any]:
    """What the client is told besides: a ``transactional.id`` of this life alone, so it fences nobody."""
    if not config.transaction_records:
        return {}
    return {
        "transactional.id": "%s-%s" % (config.actor, os.urandom(8).hex()),
        "transaction.timeout.ms": OPEN_MS,
        "message.timeout.ms": OPEN_MS,  # the client refuses a longer one
    }


class Transactions:
    """The transactions of one producer, one after the other. Its thread alone calls it."""

    def __init__(self, config: ProducerConfig, producer: Any, lane: ProducerLane, stop: threading.Event) -> None:
        """``producer``: the client. ``stop``: a clean end was asked for, which has ``flush_s`` of time."""
        self._config, self._producer, self._lane, self._stop = config, producer, lane, stop
        self._ended = 0
        self._offsets: Dict[int, Optional[int]] = {}  # index of a record of the open one -> its offset, once told
        self.room = 0  # records that the open one still takes; 0: none is open

    def start(self) -> str:
        """Before all else. Returns the name of an error after which nothing can be written; empty: there is none."""
        try:
            tried(self._producer.init_transactions, self._within_s)
        except client.KafkaException as error:
            return error_name(error.args[0])
        return ""

    def take(self, most: int) -> Tuple[int, str]:
        """Take some records, up to ``most``, into the open transaction, or begin one: how many, and the name of an
        error after which there can be none."""
        if not self.room:
            try:
                self._producer.begin_transaction()
            except client.KafkaException as error:
                return 0, error_name(error.args[0])
            self.room = self._config.transaction_records
        taken = min(most, self.room)
        self.room -= taken
        return taken, ""

    def sent(self, index: int) -> None:
        """The client has this record."""
        self._offsets[index] = None

    def written(self, index: int, offset: Optional[int]) -> None:
        """The client told where it was written, if it was; after its transaction ended that says nothing more."""
        if index in self._offsets and offset is not None and offset >= 0:
            self._offsets[index] = offset

    def end(self) -> Tuple[Dict[str, int], str]:
        """End what is open: so many records by outcome, and the name of an error after which there can be no other."""
        end, error = self._end()
        counts = dict.fromkeys(("ok", "aborted", "info"), 0)
        for index, offset in self._offsets.items():
            outcome = end if end != "ok" or offset is not None else "info"  # committed who knows where
            if outcome == "ok":
                self._lane.acked(index, offset or 0)
            else:
                (self._lane.aborted if outcome == "aborted" else self._lane.unknown)(index)
            counts[outcome] += 1
        self._offsets.clear()
        self.room = 0
        return counts, error

    def _end(self) -> Tuple[str, str]:
        """The outcome of the transaction, and the name of an error after which it is unknown.

        What is aborted on purpose is written first: else the log would never have held it.
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
