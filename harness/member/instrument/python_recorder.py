"""Records one consumer of a client that is written in Python: kafka-python and aiokafka have a common origin."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from fencepost_member.adapters.errors import FENCED, error_name
from fencepost_member.committing.commits import Answer, begun
from fencepost_member.instrument.consumer_names import Claim
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.recording import Recording
from fencepost_member.instrument.taken import TakenList, Taking
from fencepost_member.ownership import Tp

ADDRESS_AND_ACCESS = (
    "bootstrap_servers",
    "sasl_",
    "ssl_",
    "security_",
)  # prefixes of keywords for addresses, SASL, TLS


def replace(library_class: Any, calls: Any) -> SimpleNamespace:
    """Replace functions of a library's class by those of the class ``calls``. Returns the library's own functions."""
    own = SimpleNamespace()
    for name, call in list(vars(calls).items()):
        if callable(call) and hasattr(library_class, name):
            setattr(own, name, getattr(library_class, name))
            setattr(library_class, name, wraps(getattr(own, name))(call))
    return own


def alike(own: SimpleNamespace) -> SimpleNamespace:
    """Replacements that are the same for all consumers, for ``replace``; ``own`` has the library's functions."""

    def seek(self: Any, partition: Any, offset: Any) -> None:
        went = self._fencepost.goes({partition: offset})
        own.seek(self, partition, offset)
        went()

    def pause(self: Any, *partitions: Any) -> None:
        own.pause(self, *partitions)
        self._fencepost.pauses((p.topic, p.partition) for p in partitions)

    def resume(self: Any, *partitions: Any) -> None:
        own.resume(self, *partitions)
        self._fencepost.resumes((p.topic, p.partition) for p in partitions)

    def assign(self: Any, partitions: Any) -> None:
        own.assign(self, partitions)
        self._fencepost.assigns(partitions)

    def unsubscribe(self: Any) -> None:
        own.unsubscribe(self)
        self._fencepost.leaves()

    return SimpleNamespace(seek=seek, pause=pause, resume=resume, assign=assign, unsubscribe=unsubscribe)


def reaching(given: Mapping[str, Any], ours: Mapping[str, Any]) -> Dict[str, Any]:
    """A program's keyword arguments for a client, without its own addresses, SASL and TLS, overridden by ``ours``."""
    return {**{name: value for name, value in given.items() if not name.startswith(ADDRESS_AND_ACCESS)}, **ours}


def subscription(program: InstrumentedProgram, topics: Any, pattern: Any) -> Tuple[Any, Any]:
    """The topics and the pattern of a subscription by their names in this run; invalid values are passed unchanged."""
    if isinstance(pattern, str):
        (here,) = program.named(["^" + pattern.lstrip("^")])
        pattern = here if program.config.prefix else pattern
    return program.named(list(topics)) if isinstance(topics, (list, tuple, set, frozenset)) else topics, pattern


def offsets_of(offsets: Any) -> Dict[Tp, int]:
    """The next offsets that a call names; empty if they are invalid, which the library will refuse."""
    try:
        return {(tp.topic, tp.partition): _offset(at) for tp, at in offsets.items()}
    except Exception:
        return {}


class PythonRecorder(Recording):
    """See the module."""

    def __init__(
        self,
        program: InstrumentedProgram,
        claim: Optional[Claim],
        consumer: Any,
        settings: Mapping[str, Any],
        identity: Callable[[Any], Tuple[str, int]],
        consumed: Callable[[Any], Mapping[Any, Any]],
    ) -> None:
        """``consumer`` is referenced weakly. ``identity`` of the consumer is as in ``Adapter``; ``consumed`` of it are
        the offsets that it commits when a call names none."""
        known = weakref.ref(consumer)

        def who() -> Tuple[str, int]:
            alive = known()
            return identity(alive) if alive is not None else ("", -1)

        super().__init__(program, claim, who)
        self._known, self._settings, self._consumed = known, settings, consumed
        self._asked = 0  # number of commits that the program waits for

    def asks(self, topics: Any, pattern: Any) -> None:
        """Just before the program subscribes; topics and pattern have their names in this run."""
        names = list(topics) if isinstance(topics, (list, tuple, set, frozenset)) else []
        names += ["^" + pattern.lstrip("^")] if isinstance(pattern, str) else []
        if self._settings.get("group_id") is None and self.wants(names):
            self.outside("a consumer without a group reads the run's topics")
        else:
            self.subscribing(names)

    def plain(self) -> Dict[str, Any]:
        """The settings in a form that JSON can hold, by Kafka's names."""
        found = {name.replace("_", "."): _plain(value) for name, value in self._settings.items()}
        return {name: value for name, value in found.items() if value is not NotImplemented}

    def returned_records(self, records: Iterable[Any], taking: Optional[Taking] = None) -> None:
        """A poll returned these records; ``taking`` follows which of them are taken."""
        try:
            mine = [(at, r) for at, r in enumerate(records) if r.topic in self._topics]
            converted = [(r.topic, r.partition, r.offset, _bytes(r.key), _value(r.value), r.headers) for _, r in mine]
            self.delivered(converted, stores=False, taking=taking, positions=[at for at, _ in mine])
        except Exception as error:
            self.broken(error)

    def returned_lists(self, found: Dict[Any, Any]) -> None:
        """A poll returned lists of records by partition, which are replaced by lists that show what is taken."""
        records = [record for part in found.values() for record in part]
        taking, start = self.taking(len(records)), 0
        self.returned_records(records, taking)
        if taking is None:
            return
        for place, part in found.items():
            found[place] = TakenList(part, taking, start)
            start += len(part)

    @contextmanager
    def polling_for_records(self) -> Iterator[None]:
        """Around a poll."""
        self.polls()
        try:
            yield
        except Exception as error:
            if hasattr(error, "retriable"):  # otherwise it is not an error of Kafka
                name = error_name(error)
                self.error(name, repr(error), name == FENCED)
            raise

    @contextmanager
    def called(self, what: str, partitions: Iterable[Any]) -> Iterator[None]:
        """Around a callback of the program: partitions are ``assigned``, ``revoked`` or ``lost``. These clients also
        report a revocation of no partitions, which is not recorded."""
        mine = sorted(self.ours((p.topic, p.partition) for p in partitions))
        if not self.on or not (mine or what == "assigned"):
            yield
        elif what == "assigned":
            with self.assigned_callback(mine):
                yield
        else:
            with self.revoked_callback(what, mine):
                yield

    def meant(self, offsets: Optional[Mapping[Any, Any]]) -> Dict[Tp, int]:
        """The next offsets that a commit names, or that the client commits when it names none."""
        try:
            found = {(tp.topic, tp.partition): _offset(at) for tp, at in self._about(offsets).items()}
            return {tp: found[tp] for tp in self.ours(found)}
        except Exception:
            return {}  # the library will refuse it

    @contextmanager
    def commits(self, offsets: Optional[Mapping[Any, Any]]) -> Iterator[None]:
        """Around a commit that the program waits for. If it names no offsets, they are known all the same: these
        clients determine them when the call begins."""
        meant = self.meant(offsets)
        self._asked += 1
        try:
            with _waited_for(self.committing(meant, True, named=True), meant):
                yield
        finally:
            self._asked -= 1

    @contextmanager
    def commits_by_itself(self, offsets: Mapping[Any, Any]) -> Iterator[None]:
        """Around a commit that the client waits for: an auto-commit, unless the program waits for a commit. An
        auto-commit does not mean that the program has processed records."""
        meant = self.meant(offsets) if self.on and not self._asked else {}
        with _waited_for(begun(self._events, self._identity, meant, "auto") if meant else _unreported, meant):
            yield

    def finished(self, offsets: Mapping[Any, Any], answer: Any) -> None:
        """The client ended an asynchronous commit."""
        meant = self.meant(offsets) if self.on else {}
        self.committed(meant, dict.fromkeys(meant, error_name(answer) if isinstance(answer, Exception) else ""))

    def goes(self, offsets: Mapping[Any, Any]) -> Callable[[], None]:
        """The program moves its position. Call the returned function when it has."""
        found = self.meant(offsets)
        return self.seeking(found) if self.on and found else lambda: None

    def goes_to_the_beginning(self, partitions: Iterable[Any]) -> Callable[[], None]:
        """The program moves to the beginning of these partitions, or of all owned ones if there are none. Call the
        returned function when it has."""
        if not self.on:
            return lambda: None
        mine = (
            self.ours((p.topic, p.partition) for p in partitions) if partitions else self._account.ownership.intervals
        )
        return self.seeking(dict.fromkeys(mine, 0))

    def goes_to_the_end(self) -> None:
        """The program moves to the end of partitions."""
        if self.on:
            self.to_the_end()

    def assigns(self, partitions: Iterable[Any]) -> None:
        """The program assigns itself partitions."""
        try:
            mine = self.ours((p.topic, p.partition) for p in partitions)
        except Exception:
            return  # the library will refuse it
        if mine:
            self.outside("the process assigns itself partitions of the run's topics, outside the group")

    def leaves(self) -> None:
        """The program left the group without a callback: partitions that it still owned are revoked now."""
        owned: List[Tp] = sorted(self._account.ownership.intervals) if self.on else []
        if owned:
            with self.revoked_callback("revoked", owned):
                pass

    def _about(self, offsets: Optional[Mapping[Any, Any]]) -> Mapping[Any, Any]:
        return offsets if offsets is not None else self._consumed(self._known())


@contextmanager
def _waited_for(answered: Answer, meant: Dict[Tp, int]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        answered(meant, dict.fromkeys(meant, error_name(error)))
        raise
    answered(meant, dict.fromkeys(meant, ""))


def _unreported(offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None: ...


def _offset(at: Any) -> int:
    return int(at if isinstance(at, int) else at[0])


def _bytes(key: Any) -> Optional[bytes]:
    """A key as bytes, also if the program's deserializer has decoded it."""
    return key if isinstance(key, (bytes, type(None))) else str(key).encode()


def _value(value: Any) -> Optional[bytes]:
    return value if isinstance(value, bytes) else None  # the header identifies a record whose value is decoded


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return ",".join(str(getattr(each, "name", each)) for each in value)
    return NotImplemented
