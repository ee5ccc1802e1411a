"""Adapters: a thin layer over one client library each. They hold library calls and error names, and no judgement.

The file name in snake case is the client's name: ``confluent-kafka`` is ``confluent_kafka.py``. Each file offers
``connect(config, listener) -> Adapter`` and ``try_settings(config)``. What only some libraries can do is a protocol of
its own.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Protocol, Sequence, Tuple

from fencepost_member.config import ConfigError, MemberConfig

Tp = Tuple[str, int]
Headers = Optional[Sequence[Tuple[str, Optional[bytes]]]]
# Topic, partition, offset, key, value, headers.
Record = Tuple[str, int, int, Optional[bytes], Optional[bytes], Headers]


class Listener(Protocol):
    """What a client tells the member, always from inside a call of the adapter, on the caller's thread."""

    def assigned(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """Partitions came; ``apply`` carries it out at the client (incrementally where the protocol is)."""

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """Partitions are to be given up; the member still owns them until ``apply`` returns."""

    def lost(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """Partitions are gone already: somebody else may own them."""

    def committed(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """The client finished a commit that it began by itself; an error name for each partition, empty: none."""

    def error(self, name: str, text: str, fatal: bool) -> None:
        """The client reports an error by Kafka's name; after a fatal one it will not work again."""


class Delays(Listener, Protocol):
    """A listener that can put a revocation off, if its adapter polls on meanwhile."""

    def revoking(self, partitions: List[Tp]) -> bool:
        """These are to be given up: whether they can be by now. Asked in each poll until so; then they are revoked."""


class Adapter(Protocol):
    """One consumer object of one library."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group; the first polls carry it out."""

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """At most ``most`` records, an empty list after ``timeout_s`` without any."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """Commit the next offsets to read and wait for the answer: an error name for each, empty: accepted."""

    def identity(self) -> Tuple[str, int]:
        """(member id, generation or member epoch) now; an unknown generation is -1."""

    def close(self) -> None:
        """Leave the group. The revoked callback may come from inside."""


class Seeks(Protocol):
    """An adapter that can move the position inside an assignment."""

    def seek(self, tp: Tp, offset: int) -> None:
        """The next record of ``tp`` that a poll returns is the one at ``offset``."""


class Pauses(Protocol):
    """An adapter that can stop to fetch a partition that it goes on to own."""

    def pause(self, tp: Tp) -> None:
        """No poll returns records of ``tp`` any more, those that are fetched already included."""

    def resume(self, tp: Tp) -> None:
        """Polls return records of ``tp`` again, from where they were."""


class Leaves(Protocol):
    """An adapter that can leave the group and go on: it may subscribe again."""

    def unsubscribe(self) -> None:
        """Leave the group. The revoked callback, of all there is, comes from inside, or of a later poll."""


class Annotates(Protocol):
    """An adapter that can commit a remark beside the offsets."""

    def commit(self, offsets: Mapping[Tp, int], metadata: str = "") -> Dict[Tp, str]:
        """See ``Adapter``; brokers refuse a remark that is too long."""


class Defers(Protocol):
    """An adapter that can commit without waiting for the answer."""

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """Commit, see ``Adapter``; ``answered`` is called with the answer from inside of this call, of one that follows
        it, or never, where the client is closed before."""


class Starts(Protocol):
    """An adapter that can look around in its topics and begin an assignment elsewhere than at the committed offset."""

    def partitions(self, topics: Iterable[str]) -> List[Tp]:
        """All partitions of these topics; some may be missing while the client does not know them."""

    def committed(self, partitions: Sequence[Tp]) -> Dict[Tp, int]:
        """The group's committed offsets; partitions that have none, or that nobody could tell, are left out."""

    def start_at(self, offsets: Mapping[Tp, int]) -> None:
        """Inside the assigned callback, before ``apply``: begin these partitions there."""


class Stores(Protocol):
    """An adapter whose client commits by itself what is stored."""

    def store(self, offsets: Mapping[Tp, int]) -> None:
        """Let the client commit these next offsets when it thinks fit."""


class ParkedKeys(Protocol):
    """Which keys are parked, of the partitions that a member has."""

    def add(self, tp: Tp, offset: int, key: bytes) -> None:
        """The record at ``offset``, of this key, is parked."""

    def holds(self, tp: Tp, key: bytes) -> bool:
        """Whether something of this key is parked."""

    def taking(self, partitions: Sequence[Tp]) -> None:
        """In the assigned callback: learn what others have parked of these. Raises TimeoutError."""

    def close(self) -> None:
        """Nobody asks any more."""


class Output(Protocol):
    """Where a member writes what it makes of records: another topic, or the ends of the partitions that they come from.
    A fatal error is told to the listener. ``parked``: the keys of what it writes."""

    settings: Mapping[str, Any]
    parked: ParkedKeys

    def start(self) -> None:
        """Before the first poll."""

    def write(self, tp: Tp, offset: int, key: Optional[bytes], value: Optional[bytes], headers: Headers = None) -> None:
        """Write what was made of the record at ``offset``; it need not be there before ``commit``."""

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """All that was written, and the next offsets to read, see ``Adapter``; where there are transactions, together.
        Else with an error what was written since the last time is not there, and may be written again."""

    def identity(self) -> Tuple[str, int]:
        """See ``Adapter``."""

    def close(self) -> None:
        """Drop what is not committed."""


class Outputs(Protocol):
    """An adapter whose library writes, too, and commits offsets in transactions."""

    def output(self, config: MemberConfig, listener: Listener) -> Output:
        """The output for ``config.loop``, connected. Raises ConfigError when the library refuses its settings."""


class Described(Protocol):
    """What an adapter tells about itself for the record."""

    version: str
    settings: Mapping[str, Any]  # what the client was configured with, callbacks left out


def written(config: MemberConfig, adapter: Outputs, listener: Listener) -> Optional[Output]:
    """The output of a member, if it has one. Raises ConfigError when the library refuses its settings."""
    return adapter.output(config, listener) if config.loop.writes else None


def connect(config: MemberConfig, listener: Listener) -> Any:
    """The adapter for ``config.client``, connected; it satisfies ``Adapter`` and what else its library can do.

    Raises:
        ConfigError: there is no such adapter, its library is missing, or it refuses the settings.
    """
    return _module(config).connect(config, listener)


def try_settings(config: MemberConfig) -> None:
    """Ask the library of ``config.client`` whether it takes the settings, without any network.

    Raises:
        ConfigError: see ``connect``; what only brokers can refuse is not among it.
    """
    _module(config).try_settings(config)


def _module(config: MemberConfig) -> Any:
    name = config.client.replace("-", "_")
    try:
        return importlib.import_module("%s.%s" % (__name__, name))
    except ImportError as error:
        raise ConfigError("client %r cannot be used here: %s" % (config.client, error)) from error
