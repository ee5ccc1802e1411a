"""Settings that a client does not have are refused by itself, before anything else is started."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from fencepost import Group, Scenario, Topic, runner
from fencepost.clusters import local, trials
from fencepost.errors import ScenarioError
from fencepost.workloads import PollLoop
from fencepost_member import adapters
from fencepost_member.config import ConfigError, MemberConfig

CLIENTS = {"confluent-kafka": "cooperative", "kafka-python": "cooperative", "aiokafka": "eager"}
TIMES = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "isolation.level": "read_uncommitted"}


def asked(group: Group) -> list[str]:
    """What is told meanwhile."""
    reported: list[str] = []
    trials.try_settings(group, local.ABILITIES, reported.append)
    return reported


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_takes_what_it_has(monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    monkeypatch.setattr(trials, "SLOW_S", 60.0)
    assert asked(Group(1, client, CLIENTS[client], TIMES)) == []


def test_who_takes_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_accepted", set[tuple[str, str]]())  # other tests may have tried these settings
    monkeypatch.setattr(trials, "SLOW_S", 0.0)
    (said,) = asked(Group(2))
    assert said.startswith("checking the group's settings with confluent-kafka ")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"no.such.setting": 1}, 'No such configuration property: "no.such.setting"'),
        ({"isolation.level": "all"}, 'Invalid value "all" for configuration property "isolation.level"'),
        ({"session.timeout.ms": 6000, "max.poll.interval.ms": 5000}, "max.poll.interval.ms"),
    ],
)
def test_what_librdkafka_refuses_is_an_error_before_anything_starts(
    tmp_path: Path, config: dict[str, Any], said: str
) -> None:
    scenario = Scenario("refused", [Topic("orders")], Group(1, config=config), PollLoop())
    with pytest.raises(ScenarioError, match=r"confluent-kafka \d[\d.]+ rejects the group's config: ") as error:
        runner.run(scenario, plan=scenario.plan(1), runs=tmp_path)
    assert said in str(error.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_what_a_release_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    config = MemberConfig(*("trial", 0, 0, "", "trial", {}, ""), client, CLIENTS[client], {**TIMES, "check.crcs": True})
    adapters.try_settings(config)
    monkeypatch.setitem(adapters.settings.NAMES, client, {**adapters.settings.NAMES[client], "check.crcs": "crc_check"})
    with pytest.raises(ConfigError, match=rf"{client} refuses the client settings: this release has no crc.check$"):
        adapters.try_settings(config)


def test_a_program_of_the_users_and_clients_in_other_languages_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_try", lambda *_: pytest.fail("it was asked"))
    for group in (
        Group(1, command=("true",)),
        Group(1, "verifiable-consumer"),
        Group(1, "json-lines", command=("true",)),
    ):
        trials.try_settings(group, local.ABILITIES, lambda _: None)


def test_a_release_that_a_back_end_does_not_have_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_try", lambda *_: pytest.fail("it was asked"))
    for abilities in ({}, {"command": lambda: "there are images"}):
        trials.try_settings(Group(1, "kafka-python==2.0.2", "eager"), abilities, lambda _: None)


def test_nobody_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it connects"))
    for client, protocol in CLIENTS.items():
        adapters.try_settings(MemberConfig("trial", 0, 0, "", "trial", {}, "127.0.0.1:1", client, protocol, TIMES))
