"""The instrument of confluent-kafka: subclasses that replace the classes of its C module ``cimpl``.

All other modules of the library import them from there (``DeserializingConsumer`` and the asyncio consumer, too), so a
program always gets the subclasses. Arguments, results and exceptions of each call are passed on unchanged.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from confluent_kafka import cimpl

from fencepost_member.adapters.confluent.errors import error_name
from fencepost_member.instrument.confluent_recorder import ConfluentRecorder, offsets_of
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.transactions import InstrumentedTransactions

PROGRAM = InstrumentedProgram.of_environment()
CLIENTS = ("Producer", "_AdminClientImpl", "ShareConsumer")  # only connected to the run's brokers, not recorded
_poll, _consume = cimpl.Consumer.poll, cimpl.Consumer.consume


def instrument(library: Any) -> None:
    """Replace the classes in the C module, which was just loaded."""
    for name in CLIENTS:
        if hasattr(library, name):
            setattr(library, name, _reaching(getattr(library, name)))
    library.Producer = _in_transactions(library.Producer)
    library.Consumer = Consumer


def _reaching(base: Any) -> Any:
    """A subclass of ``base`` that connects to the run's brokers."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 (it becomes a method)
        settings = _settings(args, kwargs)
        base.__init__(self, *(args if settings is None else (PROGRAM.reaching(settings),)))

    return type(base.__name__, (base,), {"__init__": __init__, "__doc__": base.__doc__, "__module__": base.__module__})


def _in_transactions(base: Any) -> Any:
    """A subclass of the producer ``base`` that records offsets in transactions and whether it is idempotent."""

    class Producer(base):  # type: ignore[misc]
        __module__, __qualname__, __doc__ = base.__module__, base.__qualname__, base.__doc__

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._fencepost = InstrumentedTransactions(PROGRAM, _named)
            super().__init__(*args, **kwargs)
            given = _settings(args, kwargs) or {}
            idempotent = str(given.get("enable.idempotence", False)).lower() == "true" or "transactional.id" in given
            PROGRAM.producing("confluent-kafka", idempotent)

        def begin_transaction(self) -> None:
            super().begin_transaction()
            self._fencepost.begun()

        def send_offsets_to_transaction(self, *args: Any, **kwargs: Any) -> Any:
            positions = (args[0] if args else kwargs.get("positions")) or ()
            with self._fencepost.sending(offsets_of(positions)):
                return super().send_offsets_to_transaction(*args, **kwargs)

        def commit_transaction(self, *args: Any, **kwargs: Any) -> Any:
            with self._fencepost.ending(committed=True):
                return super().commit_transaction(*args, **kwargs)

        def abort_transaction(self, *args: Any, **kwargs: Any) -> Any:
            with self._fencepost.ending(committed=False):
                return super().abort_transaction(*args, **kwargs)

    return Producer


def _named(error: Exception) -> str:
    inner = error.args[0] if isinstance(error, cimpl.KafkaException) else None
    return error_name(inner) if isinstance(inner, cimpl.KafkaError) else "LOCAL_STATE"  # refused by the library itself


def _settings(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """The settings in a constructor's arguments; None: there are none, and the library will refuse the call."""
    given = {**(args[0] if args and isinstance(args[0], dict) else {}), **kwargs}
    return given or None


class Consumer(cimpl.Consumer):
    """A consumer that is recorded if it is a member; otherwise it behaves like the library's own."""

    __module__, __doc__ = cimpl.Consumer.__module__, cimpl.Consumer.__doc__

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _settings(args, kwargs)
        settings, claim = PROGRAM.consuming(given or {})
        self._fencepost = ConfluentRecorder(PROGRAM, claim, self, settings)
        super().__init__(*(args if given is None else ({**settings, **self._fencepost.callbacks()},)))

    def subscribe(self, topics: Any, *args: Any, **kwargs: Any) -> None:
        """As the library's."""
        names, tape = PROGRAM.named(topics) if isinstance(topics, list) else topics, self._fencepost
        callbacks = {**dict(zip(("on_assign", "on_revoke", "on_lost"), args)), **kwargs}  # noqa: B905 (3.8)
        tape.subscribing(names)
        super().subscribe(names, **(tape.around(callbacks) if tape.on else callbacks))
        if tape.on:
            version = "%s, librdkafka %s" % (cimpl.version(), cimpl.libversion()[0])
            tape.subscribed(names, "confluent-kafka", version, tape.protocol, tape.plain())

    def poll(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        tape = self._fencepost
        if tape.off():
            message = _poll(self, *args, **kwargs)
            tape.left_over((message,))
            return message
        tape.asked(args[0] if args else kwargs.get("timeout", -1))
        try:
            message = _poll(self, *args, **kwargs)
        finally:
            tape.returned()
        if message is not None and not tape.asynchronous:
            tape.returned_records((message,))
        return message

    def consume(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        tape = self._fencepost
        if tape.off():
            messages = _consume(self, *args, **kwargs)
            tape.left_over(messages)
            return messages
        tape.asked(args[1] if len(args) > 1 else kwargs.get("timeout", -1))
        try:
            messages = _consume(self, *args, **kwargs)
        finally:
            tape.returned()
        return messages if tape.asynchronous else tape.returned_list(messages)

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        tape = self._fencepost
        asked = {**dict(zip(("message", "offsets", "asynchronous"), args)), **kwargs}  # noqa: B905 (3.8)
        if not tape.on:
            return super().commit(*args, **kwargs)
        named = asked.get("message") is not None or asked.get("offsets") is not None
        offsets = tape.meant(asked) if named else tape.stored()
        wait = not asked.get("asynchronous", asked.get("async", True))
        answered = tape.committing(offsets, wait, named)
        try:
            answers = super().commit(*args, **kwargs)
        except cimpl.KafkaException as error:
            answered(offsets, dict.fromkeys(offsets, error_name(error.args[0])))
            raise
        if wait:
            committed, errors = tape.answers(answers)
            answered(committed or offsets, errors or dict.fromkeys(offsets, ""))
        return answers

    def store_offsets(self, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        tape = self._fencepost
        if tape.on:
            asked = {**dict(zip(("message", "offsets"), args)), **kwargs}  # noqa: B905 (3.8)
            tape.storing(tape.meant(asked))
        return super().store_offsets(*args, **kwargs)

    def seek(self, partition: Any) -> None:
        """As the library's."""
        went = self._fencepost.moves([partition])
        super().seek(partition)
        went()

    def pause(self, partitions: Any) -> None:
        """As the library's."""
        super().pause(partitions)
        self._fencepost.pauses(self._fencepost.places(partitions))

    def resume(self, partitions: Any) -> None:
        """As the library's."""
        super().resume(partitions)
        self._fencepost.resumes(self._fencepost.places(partitions))

    def assign(self, partitions: Any) -> None:
        """As the library's."""
        went = self._fencepost.moves(partitions)
        super().assign(partitions)
        went()

    def incremental_assign(self, partitions: Any) -> None:
        """As the library's."""
        went = self._fencepost.moves(partitions)
        super().incremental_assign(partitions)
        went()

    def close(self) -> Any:
        """As the library's."""
        if not self._fencepost.asynchronous:
            self._fencepost.closing()
        returned = super().close()
        self._fencepost.closed()
        return returned

    def __exit__(self, *error: Any) -> None:
        self.close()
