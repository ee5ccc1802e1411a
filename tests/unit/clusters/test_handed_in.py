"""Values of a test that lead to a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from fencepost.clusters.addresses import on_this_machine
from fencepost.clusters.attach.broker_output import wall_ms
from fencepost.clusters.attach.handed_in import name_of, scheme_of
from fencepost.clusters.docker.published import PublishedPort
from fencepost.errors import ScenarioError
from fencepost.model.endpoint import Endpoint


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        ("local", "local"),
        ("attach:h:1", "attach:h:1"),
        ("container:kafka", "container:kafka"),
        ("compose:a/b.yml", "compose:a/b.yml"),
        ("h:1", "attach:h:1"),
        ("h:1,i:2", "attach:h:1"),
        ("PLAINTEXT://h:1", "attach:h:1"),
        (SimpleNamespace(get_bootstrap_server=lambda: "localhost:32768"), "attach:localhost:32768"),
        (SimpleNamespace(bootstrap_servers="h:1,i:2"), "attach:h:1"),
        (SimpleNamespace(bootstrap=lambda: "h:1"), "attach:h:1"),
        (SimpleNamespace(bootstrap_servers=["h:1", "i:2"]), "attach:h:1"),
        (SimpleNamespace(context="/x", compose_file_name="kafka.yml"), "compose:/x/kafka.yml"),
        (SimpleNamespace(context="/x", compose_file_name=["a.yml"]), "compose:/x/a.yml"),
        (SimpleNamespace(context="/x", compose_file_name=None), "compose:/x/docker-compose.yml"),
    ],
)
def test_a_value_leads_to_a_cluster(cluster: object, name: str) -> None:
    assert name_of(cluster) == name


def test_a_container_of_testcontainers_leads_to_its_container_unless_the_engine_may_be_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrapped = SimpleNamespace(name="kafka")
    started = SimpleNamespace(get_wrapped_container=lambda: wrapped, get_bootstrap_server=lambda: "far:9092")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert name_of(started) == "container:kafka"
    monkeypatch.setenv("DOCKER_HOST", "tcp://far:2375")
    assert name_of(started) == "attach:far:9092"


@pytest.mark.parametrize("zone_s", [0, 3600, -12600, 20700])
def test_the_time_of_a_line_does_not_depend_on_the_container_s_time_zone(zone_s: int) -> None:
    read_s = 1_796_031_996.4
    written = datetime.fromtimestamp(read_s - 0.3 + zone_s, UTC)
    assert wall_ms(f"{written:%Y-%m-%d}", f"{written:%H:%M:%S}", f"{written.microsecond // 1000:03}", read_s) == (
        pytest.approx((read_s - 0.3) * 1000, abs=1)
    )


def test_a_value_that_leads_to_no_cluster_is_refused() -> None:
    with pytest.raises(ScenarioError, match="chaos_cluster returned int, which leads to no cluster: return an address"):
        name_of(7)


def test_a_name_of_a_back_end_may_name_a_container_or_a_compose_file() -> None:
    assert [scheme_of(name) for name in ("container:a", "compose:b", "attach:h:1", "local")] == [
        *("container:", "compose:"),
        *("", ""),
    ]


@pytest.mark.parametrize(
    ("address", "anywhere", "reaches"),
    [
        (Endpoint("127.0.0.1", 9092), False, True),
        (Endpoint("localhost", 9092), False, True),
        (Endpoint("127.0.0.2", 9092), False, False),
        (Endpoint("127.0.0.2", 9092), True, True),
        (Endpoint("127.0.0.1", 9093), True, False),
        (Endpoint("no-such-host.invalid", 9092), False, False),
    ],
)
def test_a_published_port_is_that_of_an_address(address: Endpoint, anywhere: bool, reaches: bool) -> None:
    assert PublishedPort(Endpoint("127.0.0.1", 9092), anywhere=anywhere).leads_to(address) == reaches


def test_addresses_of_interfaces_are_on_this_machine() -> None:
    assert on_this_machine(Endpoint("127.77.1.2", 1))
    assert on_this_machine(Endpoint("localhost", 1))
    assert not on_this_machine(Endpoint("192.0.2.1", 1))  # for documentation (RFC 5737)
