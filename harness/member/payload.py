"""The content of our records: writer, sequence number, and key number.

The value is ``"<4sIQQ"``: magic ``FP01``, writer, sequence number, key number, then padding up to the configured size.
The record's key is the key number in decimal. If a user's function returns the value, the same bytes without padding
are in the header ``fencepost`` instead. If members report records as text, the bytes are written in hexadecimal.
Foreign records are recorded under a hash of their key.

A record that a member produces from another record has the header ``fencepost-source``: the member, and the place of
the source record. If dead letters are retried, the keys in the redirect topic are the places of their records.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Optional, Sequence, Tuple

MAGIC = b"FP01"
HEADER = "fencepost"
SOURCE = "fencepost-source"
_LAYOUT = struct.Struct("<4sIQQ")
SIZE = _LAYOUT.size
TEXT_MAGIC = MAGIC.hex().encode()
_unpack = _LAYOUT.unpack_from


def pack(writer: int, seq: int, key: int, size: int = SIZE, text: bool = False) -> bytes:
    """The value of one record, padded with zeros to ``size`` bytes, at least ``SIZE`` (as text twice that)."""
    packed = _LAYOUT.pack(MAGIC, writer, seq, key)
    return packed.hex().encode().ljust(size, b"0") if text else packed.ljust(size, b"\0")


def carrier(value: Optional[bytes], headers: Optional[Sequence[Tuple[str, Optional[bytes]]]]) -> Optional[bytes]:
    """The value to pass to ``unpack``: our header if the record has it, otherwise its value."""
    return next((content for name, content in headers or () if name == HEADER), value)


def unpack(key: Optional[bytes], value: Optional[bytes]) -> Tuple[int, int, int]:
    """(key number, writer, sequence number) of a record; writer and sequence are -1 when it is not ours."""
    if value is not None and len(value) >= SIZE:
        if value.startswith(TEXT_MAGIC):
            value = _of_text(value)
        magic, writer, seq, number = _unpack(value)
        if magic == MAGIC:
            return number, writer, seq
    return key_hash(key), -1, -1


def _of_text(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text[: 2 * SIZE].decode()).ljust(SIZE, b"\0")
    except ValueError:
        return bytes(SIZE)


def key_hash(key: Optional[bytes]) -> int:
    """A signed 64-bit number for foreign key bytes, the same on every machine; -1 for a record without a key."""
    if key is None:
        return -1
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little", signed=True)


def source(actor: str, tp: Tuple[str, int], offset: int) -> bytes:
    """The content of the header ``SOURCE``."""
    return json.dumps([actor, *tp, offset]).encode()


def letter_id(topic: str, partition: int, offset: int) -> bytes:
    """The id of a record's dead letter, the same each time that the letter is written."""
    return json.dumps([topic, partition, offset]).encode()


def record_of(letter: bytes) -> Tuple[Tuple[str, int], int]:
    """The partition and offset of the record whose dead letter has this id."""
    topic, partition, offset = json.loads(letter)
    return (str(topic), int(partition)), int(offset)


def source_of(header: Optional[bytes]) -> Tuple[str, str, int, int]:
    """(actor, topic, partition, offset) in a header ``SOURCE``. Raises ValueError when it is invalid."""
    try:
        actor, topic, partition, offset = json.loads(header or b"")
        return str(actor), str(topic), int(partition), int(offset)
    except (TypeError, ValueError) as error:
        raise ValueError("%r names no source: %s" % (header, error)) from error
