"""Shared by all workloads: the records that producers write, and checks of options."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.interfaces import Promise
from fencepost.model import Inventory
from fencepost_member.adapters import AdapterFeature
from fencepost_member.config import LoopConfig
from fencepost_member.producing.contents import SAMPLES, are_samples

TRANSACTION_S = 10.0  # well below the time-out after which brokers abort a transaction
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_LEAST = {
    **dict.fromkeys(
        ("batch", "keys", "producers", "workers", "in_hand", "wait_ms", "transaction_timeout_ms", "attempts"), 1
    ),
    **dict.fromkeys(
        (
            "rate_hz",
            "handler_ms",
            "pause_ms",
            "slow_ms",
            "deadline_ms",
            "commit_every_ms",
            "skew",
            "burst_every_s",
            "idle_partition_s",
            "lease_ms",
            "overdue_ms",
            "poison_every",
            "retry_ms",
            "retried_after_ms",
        ),
        0,
    ),
    **dict.fromkeys(("transaction_records", "abort_every"), 0),
    "value_bytes": 24,
    "slow_partition": -1,
}
_OVERLOAD = (
    "{rate:g} records/s of {each:g} ms each are {work:g} s of work a second, and {who} have less than {able} s for it"
)


def at_least_once(*more: Promise, by_key: bool = False) -> tuple[Promise, ...]:
    """Promises of members that commit after processing: no loss, one owner at a time, progress, correct commits; with
    ``by_key`` also the order of each key; and ``more``."""
    from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress

    order = (Order(by="key"),) if by_key else ()
    return (
        Delivery("at-least-once"),
        *order,
        Ownership(of="assignment"),
        Progress(within_s=30),
        Commits(),
        *more,
    )


@dataclass(frozen=True, kw_only=True)
class Load:
    """The records that producers write.

    Attributes:
        rate_hz: records written per second, by all producers together; 0: as fast as they can. The members must be able
            to handle them.
        producers: producer processes.
        keys: the number of different keys; a key is a decimal number, and its records are all in one partition.
        skew: above 0, the first keys are more frequent: key ``k`` has the weight ``1 / (k + 1) ** skew`` (Zipf), and so
            partitions differ, too; 0: all keys are equally frequent.
        burst_every_s: producers write the records of that many seconds at once; 0: at a steady rate.
        transaction_records: records per transaction of a producer, the last one may be smaller; 0: no transactions.
        abort_every: a producer aborts every n-th transaction on purpose, once all its records are in the log; 0: none.
            Members do not receive aborted records unless their ``isolation.level`` is read_uncommitted, which is the
            default of most clients of a user's program.
        added_partitions: producers also write to partitions that are added during the run, as soon as they exist; from
            then on a key may have another partition, as with any producer of Kafka. False: members are assigned such
            partitions, which stay empty.
        idle_partition_s: the last partition of each topic that has several receives its first record only so long after
            the producers' start: until then the group has nothing to commit there; 0: there is no idle partition.
        payload: the function that makes the records' values, ``module:function``, imported by producers from the
            current directory: ``function(key: int, seq: int)`` returns bytes, text, or a dict that is sent as JSON. Or
            a file of sample messages that are sent again and again, ``FILE.jsonl``: a JSON object a line with ``key``,
            ``value`` and ``headers``; ``keys`` is then their number of different keys, unless they have none. The
            header ``fencepost`` names the producer of a record. Empty: the harness generates meaningless values.
        value_bytes: the size of a generated value.
    """

    rate_hz: float = 2000
    producers: int = 1
    keys: int = 1000
    skew: float = 0
    burst_every_s: float = 0
    transaction_records: int = 0
    abort_every: int = 0
    added_partitions: bool = False
    idle_partition_s: float = 0
    payload: str = ""
    value_bytes: int = 64

    def producer_config(self) -> dict[str, Any]:
        """The options of each of ``producers`` producers; ``rate_hz`` is its share."""
        options = {each.name: getattr(self, each.name) for each in fields(Load)}
        return {**options, "rate_hz": self.rate_hz / self.producers}


def loop_options(workload: Any, member: int) -> dict[str, Any]:
    """The options of a member's loop, from the workload; a planted bug only for the members that have it."""
    options = {each.name: getattr(workload, each.name) for each in fields(LoopConfig) if hasattr(workload, each.name)}
    if getattr(workload, "planted_in", ()) and member not in workload.planted_in:
        options["planted_bug"] = ""
    return options


def check_options(workload: Load) -> None:
    """Check numbers, functions and their combinations.

    Raises:
        ScenarioError: a number is too small, a function is neither empty nor ``module:function``, or options contradict
            each other.
    """
    for name, value in vars(workload).items():
        if name == "payload" and are_samples(value):
            continue
        if name in ("handler", "payload", "effects") and value and not _FUNCTION.fullmatch(value):
            file = f", or a file of sample messages, {SAMPLES}" if name == "payload" else ""
            raise ScenarioError(f"{name} is {value!r}; it must be of the form module:function{file}")
        if name in _LEAST and value < _LEAST[name]:
            what = f"must be at least {_LEAST[name]}" if _LEAST[name] else "cannot be negative"
            raise ScenarioError(f"{name} is {value!r}, it {what}")
    if workload.burst_every_s and not workload.rate_hz:
        raise ScenarioError("burst_every_s needs a rate_hz above 0: without a rate there are no bursts")
    if workload.abort_every and not workload.transaction_records:
        raise ScenarioError("abort_every needs transaction_records above 0: there are no transactions to abort")
    if workload.transaction_records and workload.rate_hz:
        fills_s = workload.transaction_records * workload.producers / workload.rate_hz + workload.burst_every_s
        if fills_s > TRANSACTION_S:
            raise ScenarioError(
                f"a transaction takes {fills_s:g} s to fill, and its records are not visible until then; the limit is "
                f"{TRANSACTION_S:g} s: lower transaction_records or burst_every_s"
            )


def check_deadline(deadline_ms: float, longest_ms: float, handler: str) -> None:
    """Raises ScenarioError if no record can be processed within the deadline, or the handler is the user's."""
    if deadline_ms and handler:
        raise ScenarioError(
            "deadline_ms works with the built-in handler only: yours cannot be interrupted, but it may raise"
        )
    if 0 < deadline_ms <= longest_ms:
        raise ScenarioError(
            f"deadline_ms is {deadline_ms:g}, and records that take {longest_ms:g} ms would never be processed"
        )


def check_known(what: str, value: str, known: Collection[str]) -> None:
    """Raises ScenarioError when ``value`` is none of ``known``."""
    if value not in known:
        raise ScenarioError(f"{what} {value!r} is unknown; known are {', '.join(filter(None, known))}")


def alien_loop(inventory: Inventory) -> str:
    """A sentence if members run the user's program instead of the built-in loop; else empty."""
    sentence = "the group's members run a user's program: use the workload own_program"
    return sentence if inventory.own_program else ""


def overload(rate_hz: float, each_ms: float, able: int, who: str) -> str:
    """A sentence if ``able`` workers cannot keep up with ``rate_hz`` records of ``each_ms`` each; else empty."""
    if not each_ms:
        return ""
    if not rate_hz:
        return f"rate_hz is 0, as fast as producers can, and no handler of {each_ms:g} ms keeps up with that"
    work = rate_hz * each_ms / 1000
    return "" if work < able else _OVERLOAD.format(rate=rate_hz, each=each_ms, work=work, who=who, able=able)


def unable(inventory: Inventory, members: Collection[int], needs: Collection[AdapterFeature], what: str) -> str:
    """A sentence about the first of these members whose client lacks a feature in ``needs``; empty: none does."""
    for client in (inventory.clients[index] for index in members):
        if lacks := client.lacks(needs):
            return f"{what} needs a client that can {lacks[0].value}; {client} cannot"
    return ""
