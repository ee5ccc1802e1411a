"""The audit decodes records in bulk exactly as members decode them one by one."""

from __future__ import annotations

from typing import Any

import confluent_kafka as ck
import pytest

from fencepost.errors import WaitTimeout
from fencepost.evidence import audit
from fencepost.evidence.audit import decode
from fencepost.model import TopicPartition
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


def test_who_wrote_a_record_with_a_value_of_the_users_is_in_its_header() -> None:
    values, keys = [b"{}", payload.pack(1, 2, 3), None, b"{}"], [b"9", b"3", None, b"9"]
    headers = [[("trace", b"1"), (payload.HEADER, payload.pack(4, 5, 9))], None, [("trace", b"1")], None]
    reported = decode(values, keys.__getitem__, headers.__getitem__)
    assert reported["key"].tolist() == [9, 3, -1, payload.key_hash(b"9")]
    assert reported["writer"].tolist() == [4, 1, -1, -1]
    assert reported["seq"].tolist() == [5, 2, -1, -1]


def test_no_records_are_no_rows() -> None:
    assert {name: len(column) for name, column in decode([], lambda n: None).items()} == {
        "key": 0,
        "writer": 0,
        "seq": 0,
    }


class LeaderMoves:
    """A client that asks the former leader for a while: the moment of that cannot be met with a real one."""

    def __init__(self, times: int) -> None:
        self.left = times

    def get_watermark_offsets(self, place: ck.TopicPartition, timeout: float) -> tuple[int, int]:
        self.left -= 1
        if self.left >= 0:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError.NOT_LEADER_FOR_PARTITION))
        return 0, 9


def test_a_leader_that_has_just_moved_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = LeaderMoves(2)
    assert audit._bounds(client, TopicPartition("orders", 1)) == (0, 9)
    monkeypatch.setattr(audit, "SILENCE_S", 0.3)
    with pytest.raises(
        WaitTimeout, match=r"the first offset and the end of orders-1, .*NOT_LEADER_FOR_PARTITION.*Is its leader up"
    ):
        audit._bounds(LeaderMoves(99), TopicPartition("orders", 1))  # type: ignore[arg-type]
