"""Functions of the user, named ``module:function``: they return values, handle records, and return effects."""

from __future__ import annotations

import importlib
import json
from typing import Any, Callable, Iterable, Mapping, Optional

from fencepost_member.config import ConfigError
from fencepost_member.payload import unpack


class PoisonError(ValueError):
    """A record that was produced to be impossible to process."""


def handler_of(handler: str) -> Callable[[Optional[bytes], Optional[bytes]], Any]:
    """The user's handler, called with a record's key and value; the record is processed when it returns.

    Raises:
        ConfigError: the function cannot be imported.
    """
    return _imported("handler", handler)


def effects_of(effects: str) -> Callable[[Mapping[str, Any]], Iterable[Any]]:
    """The user's function that returns the effects of a program, called with client settings.

    Raises:
        ConfigError: the function cannot be imported.
    """
    return _imported("function of effects", effects)


def poisoned(every: int) -> Callable[[Optional[bytes], Optional[bytes]], None]:
    """A handler that cannot process the last of each ``every`` records of one of our producers; 0: it can process all.

    The handler raises PoisonError.
    """

    def handle(key: Optional[bytes], value: Optional[bytes]) -> None:
        _, writer, seq = unpack(key, value)
        if every and writer >= 0 and (seq + 1) % every == 0:
            raise PoisonError("record %d of writer %d was produced to be impossible to process" % (seq, writer))

    return handle


def values_of(payload: str) -> Callable[[int, int], bytes]:
    """The function that returns the value of a record from its key number and its sequence number.

    Args:
        payload: ``module:function``; the function returns bytes, str, or a dict that JSON can hold.

    Raises:
        ConfigError: the function cannot be imported, or its value for (0, 0) is none of these.
    """
    try:
        function = _named(payload)
        encoded(function(0, 0))
    except Exception as error:  # whatever the user's code raises
        raise ConfigError(
            "the payload %s returns no value for key 0, seq 0: %s" % (payload, error_line(error))
        ) from error
    return lambda key, seq: encoded(function(key, seq))


def encoded(value: Any) -> bytes:
    """A value as bytes, to be produced. Raises TypeError for a value that is neither bytes nor str nor dict."""
    if isinstance(value, dict):
        value = json.dumps(value)
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise TypeError("it must return bytes, str or a dict, not %s" % type(value).__name__)
    return value


def _imported(what: str, name: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = _named(name)
    except Exception as error:  # whatever the user's code raises
        raise ConfigError("the %s %s cannot be imported: %s" % (what, name, error_line(error))) from error
    return function


def _named(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def error_line(error: Exception) -> str:
    """An exception of user code, in one line."""
    return "%s: %s" % (type(error).__name__, error)
