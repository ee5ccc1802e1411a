"""The audit decodes records in bulk exactly as members decode them one by one."""

from __future__ import annotations

from fencepost.evidence.audit import decode
from fencepost_member import payload


def test_records_are_decoded_in_bulk_as_the_member_decodes_them_one_by_one() -> None:
    values = [payload.pack(3, seq, seq * 7, 40) for seq in range(50)] + [
        b"foreign",
        None,
        b"X" * 64,
        payload.pack(1, 2, 3),
    ]
    keys = [b"%d" % (n * 7) for n in range(50)] + [b"k", None, b"", b"3"]
    columns = decode(values, keys.__getitem__)
    one_by_one = [payload.unpack(key, value) for key, value in zip(keys, values, strict=True)]
    assert (
        list(zip(columns["key"].tolist(), columns["writer"].tolist(), columns["seq"].tolist(), strict=True))
        == one_by_one
    )


def test_no_records_are_no_rows() -> None:
    assert {name: len(column) for name, column in decode([], lambda n: None).items()} == {
        "key": 0,
        "writer": 0,
        "seq": 0,
    }
