"""The pure half of the local back-end: settings and addresses."""

import os
from pathlib import Path

import pytest

from fencepost.clusters.addresses import Addresses, reserve
from fencepost.clusters.docker import host
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.template import new_id
from fencepost.errors import ScenarioError
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.process import Environment
from fencepost.model.clients import VERIFIABLE, Client
from fencepost.model.endpoint import Endpoint
from fencepost.processes.owner import ProcessOwner

VOTER = Endpoint("127.77.5.254", 9082)
PLACE = Addresses(number=5, lock=-1)


def settings_of_broker(spec: ClusterSpec, broker: int = 2) -> dict[str, object]:
    return server_properties.broker_properties(spec, broker, PLACE.listeners(broker, spec), VOTER, "/data")


def test_an_id_is_no_option_of_a_tool() -> None:
    ids = {new_id() for _ in range(2000)}
    assert len(ids) == 2000
    assert not any(one.startswith("-") for one in ids), "as one of 64 does by chance"


def test_a_number_is_one_clusters_whichever_cache_others_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [reserve(ClusterSpec())]
    try:
        monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path))
        taken.append(reserve(ClusterSpec()))
        assert taken[0].number != taken[1].number
    finally:
        for place in taken:
            os.close(place.lock)


def test_a_slot_is_advertised_at_its_own_proxy_and_nowhere_else() -> None:
    settings = settings_of_broker(ClusterSpec(slots=2))
    listens = dict(entry.split("://") for entry in str(settings["listeners"]).split(","))
    advertised = dict(entry.split("://") for entry in str(settings["advertised.listeners"]).split(","))
    internal = ["INTERNAL1", "INTERNAL2", "INTERNAL3"]
    assert list(listens) == list(advertised) == [*internal, "OBSERVER", "SLOT0", "SLOT1"]
    for slot in (0, 1):
        assert listens[f"SLOT{slot}"] == str(PLACE.upstream(slot, 2))
        assert advertised[f"SLOT{slot}"] == str(PLACE.proxy(slot, 2)) != listens[f"SLOT{slot}"]
    for name in (*internal, "OBSERVER"):
        assert advertised[name] == listens[name]


def test_every_listener_has_a_protocol_and_one_network_thread() -> None:
    settings = settings_of_broker(ClusterSpec(slots=1))
    names = ["INTERNAL1", "INTERNAL2", "INTERNAL3", "OBSERVER", "SLOT0"]
    protocols = str(settings["listener.security.protocol.map"]).split(",")
    assert protocols == [f"{name}:PLAINTEXT" for name in (*names, "CONTROLLER2")]
    assert all(settings[f"listener.name.{name.lower()}.num.network.threads"] == 1 for name in names)


def test_no_two_endpoints_of_a_cluster_are_the_same() -> None:
    brokers, slots = range(1, server_properties.MOST_BROKERS + 1), range(server_properties.MOST_SLOTS)
    endpoints = [PLACE.controller, PLACE.proxy_api]
    for broker in brokers:
        endpoints += [PLACE.observer(broker), *(PLACE.internal(node, broker) for node in (None, *brokers))]
        endpoints += [place(slot, broker) for slot in slots for place in (PLACE.upstream, PLACE.proxy)]
    assert len(set(endpoints)) == len(endpoints)
    assert all(int(endpoint.host.rsplit(".", 1)[1]) <= 254 for endpoint in endpoints)


def test_every_slot_has_an_address_of_its_own_so_that_packet_rules_can_name_it() -> None:
    assert len({PLACE.proxy(slot, 1).host for slot in range(8)}) == 8
    assert {PLACE.proxy(3, broker).host for broker in (1, 2, 3)} == {"127.77.5.23"}


def test_each_broker_has_a_way_of_its_own_to_every_other_one_and_to_the_controller() -> None:
    spec = ClusterSpec(slots=0)
    of_controller = server_properties.controller_properties(spec, PLACE.controller_listeners(spec), "/data")
    hears = dict(entry.split("://") for entry in of_controller["listeners"].split(","))
    assert of_controller["controller.listener.names"].split(",") == list(hears)
    assert of_controller["controller.quorum.voters"] == f"100@{hears['CONTROLLER']}"
    for broker in (1, 2, 3):
        settings = server_properties.broker_properties(
            spec, broker, PLACE.listeners(broker, spec), PLACE.internal(None, broker), "/data"
        )
        assert settings["inter.broker.listener.name"] == f"INTERNAL{broker}"
        name = settings["controller.listener.names"]
        assert (name, settings["controller.quorum.voters"]) == (f"CONTROLLER{broker}", f"100@{hears[name]}")


def test_what_the_controller_decides_is_in_its_file_also_when_the_scenario_asks_the_brokers() -> None:
    plain = server_properties.controller_properties(ClusterSpec(), PLACE.controller_listeners(ClusterSpec()), "/data")
    assert plain["broker.session.timeout.ms"] == 3000
    assert plain["auto.leader.rebalance.enable"] is False
    spec = ClusterSpec(broker_config={"min.insync.replicas": 1}, controller_config={"broker.session.timeout.ms": 9000})
    asked = server_properties.controller_properties(spec, PLACE.controller_listeners(spec), "/data")
    assert asked["min.insync.replicas"] == 1
    assert asked["broker.session.timeout.ms"] == 9000
    assert settings_of_broker(spec)["min.insync.replicas"] == 1


def test_the_times_of_the_consumer_protocol_come_from_the_spec() -> None:
    spec = ClusterSpec(broker_config={"group.consumer.session.timeout.ms": 2500})
    assert settings_of_broker(spec)["group.consumer.session.timeout.ms"] == 2500
    assert settings_of_broker(ClusterSpec())["group.consumer.session.timeout.ms"] == 6000


def test_a_cluster_of_one_broker_asks_for_no_replica_that_cannot_exist() -> None:
    settings = settings_of_broker(ClusterSpec(brokers=1), broker=1)
    factors = {name: value for name, value in settings.items() if name.endswith(("replication.factor", "min.isr"))}
    assert set(factors.values()) == {1}
    assert settings["min.insync.replicas"] == 1


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (ClusterSpec(brokers=0), "found 0 brokers; use 1 to 9"),
        (ClusterSpec(slots=201), "found 201 slots for members; use 0 to 200"),
        (ClusterSpec(broker_config={"listeners": "X://:1"}), "listeners belongs to the harness"),
        (ClusterSpec(controller_config={"node.id": 7}), "node.id belongs to the harness"),
    ],
)
def test_what_cannot_be_started_is_refused_with_a_sentence(spec: ClusterSpec, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        server_properties.check(spec)


def test_settings_are_written_as_a_properties_file_reads_them() -> None:
    text = server_properties.render({"a": True, "b": 3, "path": "C:\\logs", "lines": "x\ny"})
    assert text == "a=true\nb=3\npath=C:\\\\logs\nlines=x\\ny\n"


def test_meta_properties_mark_a_directory_as_formatted() -> None:
    assert server_properties.meta_properties("c", 3, "d").splitlines() == [
        "version=1",
        "cluster.id=c",
        "node.id=3",
        "directory.id=d",
    ]


def test_a_client_that_brokers_no_longer_understand_is_refused() -> None:
    old, new = (Environment(Client("confluent-kafka", version), "3.9") for version in ("1.7.0", "1.8.2"))
    for kafka in ("", "4.3.1"):
        with pytest.raises(ScenarioError, match=r"confluent-kafka==1.7.0 cannot talk to Kafka 4, .* option kafka \(4"):
            server_properties.check(ClusterSpec(members=[old], kafka=kafka))
    for spec in (ClusterSpec(members=[new]), ClusterSpec(members=[old], kafka="3.9.1")):
        server_properties.check(spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (ClusterSpec(members=[Environment(python="3.9")]), "members in containers use their image's Python"),
        (
            ClusterSpec(members=[Environment(Client("aiokafka", "0.12.0"))]),
            "with the confluent-kafka, kafka-python, aiokafka that are installed here",
        ),
        (ClusterSpec(members=[Environment(Client(VERIFIABLE, "3.9.1"))]), "the verifiable-consumer of its Kafka: use"),
        (
            ClusterSpec(members=[Environment(), Environment(Client("confluent-kafka", "2.3.0"))]),
            "use --cluster local for others",
        ),
        (ClusterSpec(kafka="3.9.1"), "the images are of Kafka 4.3.1: use --cluster local for Kafka 3.9.1"),
    ],
)
def test_containers_have_one_python_one_release_and_one_kafka(spec: ClusterSpec, sentence: str) -> None:
    with ProcessOwner.open() as owner, pytest.raises(ScenarioError, match=sentence):
        host.start(spec, owner)
