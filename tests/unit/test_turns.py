"""Runs take turns on a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost import turns
from fencepost.errors import WaitTimeout


def test_a_machine_has_at_least_one_place() -> None:
    assert turns.places() >= 1


def test_a_full_machine_lets_nobody_in_and_a_free_place_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "places", lambda: 2)
    with turns.turn(tmp_path) as first:
        with turns.turn(tmp_path) as second:
            assert {first, second} == {0, 1}
            with pytest.raises(WaitTimeout, match="2 places"), turns.turn(tmp_path, within_s=0):
                pass
        with turns.turn(tmp_path, within_s=0) as again:
            assert again == second
