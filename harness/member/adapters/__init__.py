"""Adapters: a thin layer over one client library each. They hold library calls and error names, and no judgement.

The file name in snake case is the client's name: ``confluent-kafka`` is ``confluent_kafka.py``. Each file offers
``connect(config, listener) -> Adapter`` and ``try_settings(config)``. Abilities that only some libraries have are
separate protocols.
"""

from __future__ import annotations

import importlib
from enum import Enum
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Protocol, Sequence, Tuple

from fencepost_member.config import ConfigError, MemberConfig

Tp = Tuple[str, int]
Headers = Optional[Sequence[Tuple[str, Optional[bytes]]]]
# Topic, partition, offset, key, value, headers.
Record = Tuple[str, int, int, Optional[bytes], Optional[bytes], Headers]


class AdapterFeature(Enum):
    """A feature that only some adapters have. The value completes the sentence "The client can …".

    All but the last two are protocols of this module, by the same name in camel case.
    """

    SEEKS = "move the position inside an assignment"
    PAUSES = "pause partitions and resume them"
    RESUBSCRIBE = "leave the group and subscribe again"
    COMMIT_METADATA = "commit metadata with an offset"
    ASYNC_COMMIT = "commit without waiting for the answer"
    START_OFFSETS = "start an assignment at another offset than the committed one"
    STORE_OFFSETS = "let the client auto-commit the offsets that the member stored"
    OUTPUTS = "produce, and commit offsets in transactions"
    DELAY_REVOCATION = "keep polling while a revocation is delayed"
    REPORT_COMMITS = "report the client's auto-commits"
    COMMIT_UNOWNED = "commit partitions that the member is not assigned"


class ClientListener(Protocol):
    """A client's callbacks to the member, always from inside a call of the adapter, on the caller's thread."""

    def assigned(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """Partitions were assigned; ``apply`` assigns them at the client (incrementally if the protocol is so)."""

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """Partitions are being revoked; the member still owns them until ``apply`` returns."""

    def lost(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """Partitions were lost: another member may own them already."""

    def committed(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """An auto-commit of the client ended; ``errors`` has a name for each partition, empty for success."""

    def error(self, name: str, text: str, fatal: bool) -> None:
        """The client reports an error by Kafka's name; after a fatal one it cannot be used any more."""


class DelayRevocation(ClientListener, Protocol):
    """A listener that can delay a revocation, if its adapter continues to poll meanwhile."""

    def revoking(self, partitions: List[Tp]) -> bool:
        """Whether the partitions can be revoked now. Called in each poll until it is True; then they are revoked."""


class Adapter(Protocol):
    """One consumer object of one library."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe; the client joins the group in the polls that follow."""

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """Return at most ``most`` records, an empty list after ``timeout_s`` without any."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """Commit the next offsets to read and wait. Returns an error name for each partition, empty for success."""

    def identity(self) -> Tuple[str, int]:
        """(member id, generation or member epoch) now; an unknown generation is -1."""

    def close(self) -> None:
        """Leave the group and close the client. The revoked callback may run inside this call."""


class Seeks(Protocol):
    """An adapter that can move the position inside an assignment."""

    def seek(self, tp: Tp, offset: int) -> None:
        """Move the position: the next record of ``tp`` that a poll returns is the record at ``offset``."""


class Pauses(Protocol):
    """An adapter that can stop fetching a partition and still own it."""

    def pause(self, tp: Tp) -> None:
        """Polls return no more records of ``tp``, not even records that were fetched already."""

    def resume(self, tp: Tp) -> None:
        """Polls return records of ``tp`` again, from the position at the pause."""


class Resubscribe(Protocol):
    """An adapter that can leave the group and subscribe again later."""

    def unsubscribe(self) -> None:
        """Leave the group. The revoked callback for all partitions runs inside this call or inside a later poll."""


class CommitMetadata(Protocol):
    """An adapter that can commit metadata with the offsets."""

    def commit(self, offsets: Mapping[Tp, int], metadata: str = "") -> Dict[Tp, str]:
        """See ``Adapter``; brokers refuse metadata that is too long."""


class AsyncCommit(Protocol):
    """An adapter that can commit without waiting for the answer."""

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """Commit, see ``Adapter``. ``answered`` is called with the answer inside this call or inside a later call of
        the adapter; never, if the client is closed first."""


class StartOffsets(Protocol):
    """An adapter that can query partitions and committed offsets, and begin an assignment at another offset than the
    committed one."""

    def partitions(self, topics: Iterable[str]) -> List[Tp]:
        """All partitions of these topics; partitions that the client does not know yet are missing."""

    def committed(self, partitions: Sequence[Tp]) -> Dict[Tp, int]:
        """The group's committed offsets, without partitions that have none or whose offset cannot be read."""

    def start_at(self, offsets: Mapping[Tp, int]) -> None:
        """Set the offsets at which these partitions begin. Call it in the assigned callback, before ``apply``."""


class StoreOffsets(Protocol):
    """An adapter whose client auto-commits the offsets that are stored."""

    def store(self, offsets: Mapping[Tp, int]) -> None:
        """Store these next offsets; the client commits them with its next auto-commit."""


class ParkedKeys(Protocol):
    """The keys that have parked records (dead letters), in the partitions of a member."""

    def add(self, tp: Tp, offset: int, key: bytes) -> None:
        """The record at ``offset``, with this key, was parked."""

    def holds(self, tp: Tp, key: bytes) -> bool:
        """Whether a record of this key is parked."""

    def assigning(self, partitions: Sequence[Tp]) -> None:
        """Read which keys other members parked in these partitions; for the assigned callback. Raises TimeoutError."""

    def close(self) -> None:
        """Release the client; no other method is called afterwards."""


class Output(Protocol):
    """The destination to which a member produces: another topic, or the ends of the partitions that it consumes.
    The listener gets fatal errors. ``parked``: the keys of parked records."""

    settings: Mapping[str, Any]
    parked: ParkedKeys

    def start(self) -> None:
        """Prepare the producer; called before the first poll."""

    def write(self, tp: Tp, offset: int, key: Optional[bytes], value: Optional[bytes], headers: Headers = None) -> None:
        """Produce the result of the record at ``offset``; the broker may have it only after ``commit``."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """Make all that was written durable and commit the next offsets, see ``Adapter``: in one transaction if there
        are transactions. Without transactions, an error means that what was written since the last commit is not in the
        log and may be written again."""

    def identity(self) -> Tuple[str, int]:
        """See ``Adapter``."""

    def close(self) -> None:
        """Close the producer and drop what is not committed."""


class Outputs(Protocol):
    """An adapter whose library also produces, and commits offsets in transactions."""

    def output(self, config: MemberConfig, listener: ClientListener) -> Output:
        """The output for ``config.loop``, connected. Raises ConfigError when the library refuses its settings."""


class AdapterInfo(Protocol):
    """An adapter's description of its client, for the history."""

    version: str
    settings: Mapping[str, Any]  # the client's settings without callbacks


def written(config: MemberConfig, adapter: Outputs, listener: ClientListener) -> Optional[Output]:
    """The output of a member, if it has one. Raises ConfigError when the library refuses its settings."""
    return adapter.output(config, listener) if config.loop.writes else None


def connect(config: MemberConfig, listener: ClientListener) -> Any:
    """The adapter for ``config.client``, connected; it satisfies ``Adapter`` and the protocols that its library allows.

    Raises:
        ConfigError: there is no such adapter, its library is missing, or the library refuses the settings.
    """
    return _module(config).connect(config, listener)


def try_settings(config: MemberConfig) -> None:
    """Check the settings with the library of ``config.client``, without any network.

    Raises:
        ConfigError: see ``connect``. Settings that only brokers can refuse pass.
    """
    _module(config).try_settings(config)


def _module(config: MemberConfig) -> Any:
    name = config.client.replace("-", "_")
    try:
        return importlib.import_module("%s.%s" % (__name__, name))
    except ImportError as error:
        message = "client %r has no adapter, or its library is not installed in this Python: %s" % (
            config.client,
            error,
        )
        raise ConfigError(message) from error
