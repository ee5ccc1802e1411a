"""The contents of records for a user's program: made by a function of the user, or taken from sample messages."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from fencepost_member.config import ConfigError
from fencepost_member.payload import HEADER, SOURCE
from fencepost_member.user_functions import values_of

SAMPLES = ".jsonl"  # a payload with this suffix is a file of sample messages
FIELDS = ("key", "value", "headers")
OURS = (HEADER, SOURCE)  # in messages that were copied from a run


def are_samples(payload: str) -> bool:
    """Whether a payload is a file of sample messages; otherwise it is a function."""
    return payload.endswith(SAMPLES)


class Content(NamedTuple):
    """What a record contains, besides our header. A value of None is a tombstone."""

    key: Optional[bytes]
    value: Optional[bytes]
    headers: Tuple[Tuple[str, Optional[bytes]], ...] = ()


class FromFunction:
    """Contents whose values a function of the user makes. The key is the key number, in decimal.

    Attributes:
        keys: how many different keys there are.
    """

    def __init__(self, payload: str, keys: int) -> None:
        """``payload``: see ``values_of``. Raises ConfigError: there is no such function."""
        self._value_of, self.keys = values_of(payload), keys

    def __call__(self, number: int, seq: int) -> Content:
        """The content of the record with this key number and sequence number."""
        return Content(b"%d" % number, self._value_of(number, seq))


class FromSamples:
    """Sample messages, again and again. Those with the same key follow each other in the order of the file.

    Attributes:
        keys: how many different keys there are; for samples without a key, as many as asked for, which only decide
            the partitions.
    """

    def __init__(self, path: str, keys: int) -> None:
        """``path``: see ``read``. Raises ConfigError."""
        of_key: Dict[Optional[bytes], List[Content]] = {}
        for sample in read(path):
            of_key.setdefault(sample.key, []).append(sample)
        self._of_key = [cycle(samples) for samples in of_key.values()]
        self.keys = keys if None in of_key else len(of_key)

    def __call__(self, number: int, seq: int) -> Content:
        """The content of the record with this key number and sequence number."""
        return next(self._of_key[number % len(self._of_key)])


Contents = Union[FromFunction, FromSamples]


def contents_of(payload: str, keys: int) -> Contents:
    """The contents that a payload describes: ``module:function``, or the path of a file of samples.

    Raises:
        ConfigError: there is no such function, or a line of the file is no sample.
    """
    return FromSamples(payload, keys) if are_samples(payload) else FromFunction(payload, keys)


def read(path: str) -> List[Content]:
    """The samples in a file: one JSON object a line, with ``key``, ``value`` and ``headers``, each of which may be left
    out. Text is taken as it is, null is nothing, and any other value is written as JSON.

    Raises:
        ConfigError: the file cannot be read, is empty, or a line is no sample; or only some samples have a key.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("the file of sample messages %s cannot be read: %s" % (path, error)) from error
    samples = [_sample(line, "%s, line %d" % (path, number)) for number, line in lines]
    if not samples:
        raise ConfigError("the file of sample messages %s is empty: write one JSON object a line" % path)
    if len({sample.key is None for sample in samples}) > 1:
        raise ConfigError(
            "%s has samples with a key and samples without one; records with a key have the partition of their key, "
            "others any: use one file for each" % path
        )
    return samples


def _sample(line: str, place: str) -> Content:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ConfigError("%s: expected a JSON object, found no JSON (%s)" % (place, error)) from error
    if not isinstance(found, dict) or not {*found} <= {*FIELDS}:
        what = "the fields %s" % ", ".join(map(repr, found)) if isinstance(found, dict) else type(found).__name__
        raise ConfigError("%s: expected a JSON object with %s, found %s" % (place, ", ".join(FIELDS), what))
    headers = {} if found.get("headers") is None else found["headers"]
    if not isinstance(headers, dict):
        raise ConfigError("%s: expected headers as an object, found %s" % (place, type(headers).__name__))
    try:
        named = tuple((name, _encoded(value)) for name, value in headers.items() if name not in OURS)
        return Content(_encoded(found.get("key")), _encoded(found.get("value")), named)
    except UnicodeEncodeError as error:
        raise ConfigError("%s: expected text, found half of a character (%s)" % (place, error)) from error


def _encoded(value: Any) -> Optional[bytes]:
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()
