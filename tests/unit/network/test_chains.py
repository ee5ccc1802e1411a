"""The chains of one owner: each is made and hooked once, however many ask for it; by programs that only note what they
are told.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fencepost.errors import ClusterError
from fencepost.interfaces.network import PacketLoss
from fencepost.model.endpoint import Endpoint
from fencepost.network.packets import TRIAL, PacketFilter
from fencepost.network.redirects import TRIAL_GROUP, Redirect, redirect
from fencepost.processes import reaper
from fencepost.processes.owner import ProcessOwner

LOSS = PacketLoss("a trial", TRIAL, "upstream", share=0.2)
LEADING = Redirect(TRIAL_GROUP, Endpoint(*TRIAL), Endpoint(*TRIAL))


class Iptables:
    """Both programs; what the second one shows has met 7 packets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._told = folder, folder / "told"
        self._told.touch()
        self.answers(True)
        self._program("iptables", rf"/bin/sed -n 's/^-I \(.*--comment loss-[0-9]*\)/-A \1 -c 7 364/p' {self._told}")

    def answers(self, well: bool) -> None:
        self._program("iptables-restore", f"/bin/cat >> {self._told}" if well else "echo no >&2; exit 1")

    def told(self, *words: str) -> list[str]:
        """What it was told so far, of lines with all of these words."""
        return [line for line in self._told.read_text().splitlines() if all(word in line for word in words)]

    def _program(self, name: str, script: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)


@pytest.fixture
def iptables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iptables:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return Iptables(folder)


@pytest.fixture
def owner(tmp_path: Path) -> ProcessOwner:
    return cast("ProcessOwner", SimpleNamespace(token="0123456789abcdef", directory=tmp_path))


def test_two_filters_of_one_owner_share_a_chain_that_is_hooked_once(iptables: Iptables, owner: ProcessOwner) -> None:
    first, second = PacketFilter(owner), PacketFilter(owner)
    for rules in (first, second, first):
        rules.lose([LOSS])
    chain = reaper.chain_of(owner.token)
    assert iptables.told("OUTPUT") == [f"-I OUTPUT -p tcp -j {chain}"]
    assert iptables.told(":") == [f":{chain} -"], "made again, it would lose the rules that it has"
    assert len(iptables.told("-j DROP")) == 3


def test_each_filter_counts_and_takes_away_its_own_rules(iptables: Iptables, owner: ProcessOwner) -> None:
    first, second = PacketFilter(owner), PacketFilter(owner)
    one, other = first.lose([LOSS, LOSS]), second.lose([LOSS])
    assert (first.lost(), second.lost()) == (dict.fromkeys(one, 7), dict.fromkeys(other, 7))
    second.restore(one)
    assert iptables.told("-D") == []
    second.restore([*one, *other])
    assert len(iptables.told("-D")) == len(iptables.told("-D", f"--comment {other[0]} ")) == 1


def test_what_leads_connections_has_a_chain_of_its_own_in_its_table_once(
    iptables: Iptables, owner: ProcessOwner
) -> None:
    PacketFilter(owner).lose([LOSS])
    redirect(owner, [LEADING])
    redirect(owner, [LEADING])
    assert [len(iptables.told(word)) for word in ("OUTPUT", "-j DROP", "-j DNAT")] == [2, 1, 2]
    assert {mark for mark in reaper.CHAINS if (owner.directory / mark).exists()} == {"packets", "redirects"}


def test_what_was_refused_is_made_by_who_asks_next(iptables: Iptables, owner: ProcessOwner) -> None:
    iptables.answers(False)
    with pytest.raises(ClusterError, match="iptables refused"):
        PacketFilter(owner).lose([LOSS])
    assert not (owner.directory / "packets").exists()
    iptables.answers(True)
    PacketFilter(owner).lose([LOSS])
    assert len(iptables.told("OUTPUT")) == 1
