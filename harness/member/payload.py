"""What a record of ours carries: who wrote it, as which of its records, under which key.

The value is ``"<4sIQQ"``: magic ``FP01``, writer, sequence number, key number, then padding up to the wanted size.
The record's key is the key number in decimal. Where the value is one that a user's program reads, the same is in the
header ``fencepost``, without padding. Where a member tells of records in text, both are written in hexadecimal. Records
of anybody else are recorded under a hash of their key bytes.

What a member makes of a record carries in the header ``fencepost-source`` who made it, and of which record. Where dead
letters are retried, the ids of the redirect topic say of which record they are.
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
    """The value of one record, padded with zeros to ``size`` bytes, but never shorter than it must be."""
    packed = _LAYOUT.pack(MAGIC, writer, seq, key)
    return packed.hex().encode().ljust(size, b"0") if text else packed.ljust(size, b"\0")


def carrier(value: Optional[bytes], headers: Optional[Sequence[Tuple[str, Optional[bytes]]]]) -> Optional[bytes]:
    """What ``unpack`` is to be given as the value: our header, where a record has one."""
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
    """The id of a record's dead letter, however often that is written."""
    return json.dumps([topic, partition, offset]).encode()


def record_of(letter: bytes) -> Tuple[Tuple[str, int], int]:
    """The place and offset of the record whose letter has this id."""
    topic, partition, offset = json.loads(letter)
    return (str(topic), int(partition)), int(offset)


def source_of(header: Optional[bytes]) -> Tuple[str, str, int, int]:
    """(actor, topic, partition, offset). Raises ValueError when it is no such header."""
    try:
        actor, topic, partition, offset = json.loads(header or b"")
        return str(actor), str(topic), int(partition), int(offset)
    except (TypeError, ValueError) as error:
        raise ValueError("%r names no source: %s" % (header, error)) from error
