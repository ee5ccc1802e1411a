"""Functions of the user's, by the name ``module:function``: what makes values, handles records, and tells effects."""

from __future__ import annotations

import importlib
import json
from typing import Any, Callable, Iterable, Mapping, Optional

from fencepost_member.config import ConfigError
from fencepost_member.payload import unpack


class PoisonError(ValueError):
    """A record that was written to be impossible to process."""


def handler_of(handler: str) -> Callable[[Optional[bytes], Optional[bytes]], Any]:
    """What handles a record, given its key and its value; the record is done when it returns.

    Raises:
        ConfigError: there is no such function.
    """
    return _imported("handler", handler)


def effects_of(effects: str) -> Callable[[Mapping[str, Any]], Iterable[Any]]:
    """What tells the effects of a program, given the settings of a client.

    Raises:
        ConfigError: there is no such function.
    """
    return _imported("function of effects", effects)


def poisoned(every: int) -> Callable[[Optional[bytes], Optional[bytes]], None]:
    """A handler that cannot process the last one of ``every`` records of a writer of ours; 0: it can process all."""

    def handle(key: Optional[bytes], value: Optional[bytes]) -> None:
        _, writer, seq = unpack(key, value)
        if every and writer >= 0 and (seq + 1) % every == 0:
            raise PoisonError("nobody can process record %d of writer %d" % (seq, writer))

    return handle


def values_of(payload: str) -> Callable[[int, int], bytes]:
    """What gives the value of a record by its key number and its sequence number.

    Args:
        payload: ``module:function``, of which the function gives bytes, text, or what JSON can hold in a dict.

    Raises:
        ConfigError: there is no such function, or the value that it gives to (0, 0) is none of these.
    """
    try:
        function = _named(payload)
        encoded(function(0, 0))
    except Exception as error:  # whatever the user's code raises
        raise ConfigError("the payload %s gives no value for key 0, seq 0: %s" % (payload, said(error))) from error
    return lambda key, seq: encoded(function(key, seq))


def encoded(value: Any) -> bytes:
    """What is sent for a value. Raises TypeError when it cannot be."""
    if isinstance(value, dict):
        value = json.dumps(value)
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise TypeError("it must give bytes, str or a dict, not %s" % type(value).__name__)
    return value


def _imported(what: str, name: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = _named(name)
    except Exception as error:  # whatever the user's code raises
        raise ConfigError("the %s %s cannot be imported: %s" % (what, name, said(error))) from error
    return function


def _named(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def said(error: Exception) -> str:
    """What a user's code raised, in a line."""
    return "%s: %s" % (type(error).__name__, error)
