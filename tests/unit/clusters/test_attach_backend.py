"""How a cluster of others is named, what gives access to it, what is refused, and what is read of its batches."""

from __future__ import annotations

import shutil
import ssl
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import certifi
import pytest

from fencepost.clusters import local
from fencepost.clusters.admin.cleaning import Discovered
from fencepost.clusters.admin.connections import refuse
from fencepost.clusters.attach import cluster, examination, proxies
from fencepost.clusters.attach.access import read_access
from fencepost.clusters.attach.allow_list import AllowList
from fencepost.clusters.attach.backend import ABILITIES, Attachment
from fencepost.clusters.attach.cleanup import CleanupTask
from fencepost.clusters.attach.evidence import ForeignEvidence, whole_batches
from fencepost.clusters.cache import quiet
from fencepost.clusters.docker.published import PublishedPort
from fencepost.clusters.selection import backend
from fencepost.errors import ClusterError, NotAuthorized, NotRead, NotShown, PlanError, ScenarioError
from fencepost.faults import (
    AddPartitions,
    BlackHole,
    DeleteRecords,
    DropPackets,
    Kill,
    LoseConnects,
    MoveCoordinator,
    MoveLeaders,
    PartitionBrokers,
    Pause,
    ReassignCoordinator,
    RecreateTopic,
    RemoveMember,
    ResetOffsets,
)
from fencepost.model.endpoint import Endpoint
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner
from fencepost.runner.preflight import check_abilities
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import brokers, member
from fencepost.workloads import PollLoop, Transform
from fencepost_member.adapters import aiokafka, kafka_python_settings

SECRET = "correct-horse-battery"
SCENARIO = Scenario(
    "a guest", [Topic("orders", partitions=4)], Group(), PollLoop(), schedule=[at(1, MoveCoordinator())]
)
PLAN = SCENARIO.plan(7)


@pytest.mark.parametrize("wrong", ["attach:", "attach:host", "attach:host:0", "attach:host:70000", "attach:a:1,b:2"])
def test_an_address_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ScenarioError, match="use attach:HOST:PORT"):
        Attachment.of(wrong)


def test_back_ends_have_names_and_those_of_our_own_take_no_settings_of_access() -> None:
    assert str(backend("local")) == "local"
    assert str(backend("attach:kafka.example:9092")) == "attach:kafka.example:9092"
    with pytest.raises(ScenarioError, match="are for a cluster that exists, not for local"):
        backend("local", permitted=True)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.77.3.1", "[::1]"])
def test_these_are_addresses_of_this_machine_alone(host: str) -> None:
    assert Endpoint(host, 9092).loopback


@pytest.mark.parametrize("host", ["kafka.example", "10.0.0.1", "0.0.0.0", "[2001:db8::1]", "localhost.example"])
def test_these_may_be_anywhere(host: str) -> None:
    assert not Endpoint(host, 9092).loopback


def test_a_cluster_elsewhere_wants_yes_and_is_told_what_would_be_done() -> None:
    far = Attachment.of("attach:kafka.example:9092")
    with pytest.raises(PlanError, match="needs --yes") as refused:
        far.permit(SCENARIO, PLAN)
    for reported in (
        f"create the topics {far.prefix}orders (4 partitions, up to 3 replicas)",
        f"as the group {far.prefix}a-guest-7 with 3 members",
        "move the leader of this group's partition of __consumer_offsets",
        f"write records of a few bytes to a topic {far.prefix}fencepost.clocks, 2 a second at each broker",
        "remove topics and group",
    ):
        assert reported in str(refused.value)
    replace(far, permitted=True).permit(SCENARIO, PLAN)
    Attachment.of("attach:127.0.0.1:9092").permit(SCENARIO, PLAN)


def test_a_group_that_stays_where_it_is_moves_nobody_elses_leader() -> None:
    calm = replace(SCENARIO, schedule=())
    assert "move the leader" not in " ".join(Attachment.of("attach:h:1").intent(calm, calm.plan(1)))


def test_the_topic_that_members_write_is_told_too() -> None:
    writing = replace(SCENARIO, workload=Transform(into="done"))
    cluster = Attachment.of("attach:h:1")
    assert f"{cluster.prefix}done (4 partitions, up to 3 replicas)" in " ".join(cluster.intent(writing, PLAN))


def test_the_brokers_settings_are_not_ours() -> None:
    with pytest.raises(PlanError, match="remove broker_config"):
        Attachment.of("attach:127.0.0.1:1").permit(replace(SCENARIO, broker_config={"num.io.threads": 3}), PLAN)


def test_the_version_is_not_ours_to_choose() -> None:
    with pytest.raises(PlanError, match="has a fixed version: remove kafka"):
        Attachment.of("attach:127.0.0.1:1").permit(replace(SCENARIO, kafka="3.9.1"), PLAN)


def test_every_run_has_names_of_its_own() -> None:
    once = Attachment.of("attach:h:1")
    assert len({once.prefix, once.for_another_run().prefix, once.for_another_run().prefix}) == 3


def test_members_can_be_signalled_and_brokers_cannot() -> None:
    check_abilities(replace(SCENARIO, schedule=[at(1, Kill(), member(0), heal_after=1)]).plan(1), ABILITIES, "x")
    frozen = replace(SCENARIO, schedule=[at(1, Pause(), brokers((1,)), heal_after=1)]).plan(1)
    check_abilities(frozen, local.ABILITIES, "local")
    with pytest.raises(
        PlanError, match="needs broker-signal, but the back-end 'attach:h:1' offers only admin, command, coo"
    ):
        check_abilities(frozen, ABILITIES, "attach:h:1")


def test_packets_of_members_may_be_lost_and_those_between_brokers_may_not() -> None:
    abilities = {**ABILITIES, "packets": str}
    losing = [at(1, DropPackets(), member(0), heal_after=1), at(2, LoseConnects(), brokers((1,)), heal_after=1)]
    check_abilities(replace(SCENARIO, schedule=losing).plan(1), abilities, "attach:h:1")
    parted = replace(SCENARIO, schedule=[at(1, PartitionBrokers(), brokers((1,)), heal_after=1)]).plan(1)
    with pytest.raises(PlanError, match="needs broker-packets"):
        check_abilities(parted, abilities, "attach:h:1")


def test_where_tls_is_wanted_nobody_could_tell_that_packets_arrive_again() -> None:
    scenario = replace(SCENARIO, schedule=[at(1, DropPackets(), member(0), heal_after=1)])
    Attachment.of("attach:127.0.0.1:1").permit(scenario, scenario.plan(1))
    guarded = replace(Attachment.of("attach:127.0.0.1:1"), access={"security.protocol": "sasl_ssl"})
    with pytest.raises(PlanError, match=r"needs TLS, .*: remove the faults that disturb links"):
        guarded.permit(scenario, scenario.plan(1))
    guarded.permit(SCENARIO, PLAN)


@pytest.mark.parametrize(
    ("host", "slots", "why"),
    [
        ("[::1]", 1, r"broker 7 advertises \[::1\]:9092, which is ::1, .* IPv6"),
        ("kafka.invalid", 1, "the address kafka.invalid:9092 of broker 7 cannot be found"),
        ("127.0.0.1", 201, "found 201 members with proxies; use at most 200"),
    ],
)
def test_before_whom_no_proxies_can_be_put_is_said(tmp_path: Path, host: str, slots: int, why: str) -> None:
    with ProcessOwner.open(tmp_path) as owner, pytest.raises((ClusterError, PlanError), match=why):
        proxies.start(owner, {7: Endpoint(host, 9092)}, slots, quiet)


def test_its_topics_and_group_may_be_administrated_and_replicas_that_others_use_may_not() -> None:
    own = [at(1, MoveLeaders()), at(2, DeleteRecords()), at(3, AddPartitions()), at(4, RemoveMember(), member(0))]
    own += [at(5, ResetOffsets()), at(6, RecreateTopic())]
    allowed = replace(SCENARIO, schedule=own).plan(1)
    check_abilities(allowed, ABILITIES, "attach:h:1")
    assert "move the leader" not in " ".join(Attachment.of("attach:h:1").intent(SCENARIO, allowed))
    for fault, target, need in ((ReassignCoordinator(), None, "replicas"),):
        plan = replace(SCENARIO, schedule=[at(1, fault, target)]).plan(1)
        check_abilities(plan, local.ABILITIES, "local")
        with pytest.raises(PlanError, match=f"needs {need}"):
            check_abilities(plan, ABILITIES, "attach:h:1")


# --- access ------------------------------------------------------------------------------------------------------


def test_settings_of_access_are_read_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    who = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "guest"}
    lines = [f"{name} = {value}" for name, value in who.items()]
    file.write_text("\n".join(["# SASL", "", *lines, f"sasl.password={SECRET}="]))
    attached = Attachment.of("attach:h:1", file)
    assert attached.access == {**who, "sasl.password": f"{SECRET}="}
    assert SECRET not in repr(attached)
    assert SECRET not in str(attached)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (SECRET, "line 1 of .* does not have the form name=value"),
        (f"sasl.jaas.config={SECRET}", "sets 'sasl.jaas.config', which is not a setting of access; use only security"),
    ],
)
def test_what_is_wrong_is_said_without_a_value(tmp_path: Path, text: str, reported: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(ScenarioError, match=reported) as refused:
        read_access(file)
    assert SECRET not in str(refused.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        read_access(tmp_path / "none")


def test_files_of_access_are_named_from_the_current_directory_on_and_found_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("client.properties").write_text("security.protocol = SSL\nssl.ca.location = ca.pem")
    with pytest.raises(ScenarioError, match=r"names as ssl\.ca\.location cannot be read: No such file"):
        read_access(Path("client.properties"))
    shutil.copy(certifi.where(), "ca.pem")
    assert read_access(Path("client.properties"))["ssl.ca.location"] == str(tmp_path / "ca.pem")


def test_files_that_hold_no_certificate_are_said_before_anybody_connects(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(SECRET)
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.ca.location={tmp_path / 'ca.pem'}")
    with pytest.raises(ScenarioError, match=r"TLS files that .* names cannot be used: .*X509") as refused:
        read_access(file)
    assert SECRET not in str(refused.value)


PASSWORD = {"sasl.username": "guest", "sasl.password": SECRET}
TOKENS = {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    "sasl.oauthbearer.client.id": "guest",
    "sasl.oauthbearer.client.secret": SECRET,
}


def written(folder: Path, protocol: str, mechanism: str = "", **more: str) -> Path:
    """A file with these settings."""
    file = folder / "client.properties"
    given = {"security.protocol": protocol, **({"sasl.mechanism": mechanism} if mechanism else {}), **more}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    return file


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_these_mechanisms_need_a_password(tmp_path: Path, mechanism: str) -> None:
    assert read_access(written(tmp_path, "sasl_ssl", mechanism, **PASSWORD))["sasl.mechanism"] == mechanism
    with pytest.raises(ScenarioError, match=f"sasl.mechanism={mechanism} needs sasl.password"):
        read_access(written(tmp_path, "SASL_SSL", mechanism, **{"sasl.username": "guest"}))


def test_tokens_need_an_endpoint(tmp_path: Path) -> None:
    more = {"sasl.oauthbearer.scope": "kafka", "sasl.oauthbearer.extensions": "a=b"}
    assert read_access(written(tmp_path, "SASL_SSL", "OAUTHBEARER", **TOKENS, **more)).keys() >= TOKENS.keys()
    for name in TOKENS:
        with pytest.raises(ScenarioError, match=f"sasl.mechanism=OAUTHBEARER needs {name}"):
            read_access(written(tmp_path, "SASL_SSL", "OAUTHBEARER", **{k: v for k, v in TOKENS.items() if k != name}))


@pytest.mark.parametrize(
    ("protocol", "mechanism", "more", "why"),
    [
        ("TLS", "", {}, "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("SSL", "PLAIN", PASSWORD, r"sasl\.\* needs security.protocol=SASL_SSL .*, but it is SSL"),
        ("PLAINTEXT", "", {"ssl.key.password": SECRET}, r"ssl\.\* needs security.protocol=SASL_SSL .* is PLAINTEXT"),
        ("SASL_SSL", "", PASSWORD, "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ("SASL_SSL", "GSSAPI", {}, "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ("SASL_SSL", "PLAIN", {**PASSWORD, **TOKENS}, "PLAIN does not use sasl.oauthbearer.method, .*: remove it"),
        ("SASL_SSL", "OAUTHBEARER", {**PASSWORD, **TOKENS}, "does not use sasl.username, sasl.password: remove it"),
        (
            "SASL_SSL",
            "OAUTHBEARER",
            {**TOKENS, "sasl.oauthbearer.token.endpoint.url": f"https://guest:{SECRET}@login.example/"},
            "sasl.oauthbearer.token.endpoint.url must be an address",
        ),
    ],
)
def test_what_gives_no_access_is_refused_before_anybody_connects(
    tmp_path: Path, protocol: str, mechanism: str, more: dict[str, str], why: str
) -> None:
    with pytest.raises(ScenarioError, match=f"client.properties gives no access: .*{why}") as refused:
        read_access(written(tmp_path, protocol, mechanism, **more))
    assert SECRET not in str(refused.value)


CLIENTS: dict[str, Any] = {
    "kafka-python": kafka_python_settings.client_arguments,
    "aiokafka": aiokafka.client_arguments,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_in_python_get_a_provider_of_tokens(client: str) -> None:
    wanted = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER", **TOKENS}
    found = CLIENTS[client](wanted)
    assert sorted(found) == ["sasl_mechanism", "sasl_oauth_token_provider", "security_protocol", "ssl_context"]
    assert SECRET not in repr(found)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("algorithm", "compared"), [("", True), ("https", True), ("none", False)])
def test_clients_in_python_compare_hosts_as_librdkafka_does(client: str, algorithm: str, compared: bool) -> None:
    wanted = {"ssl.endpoint.identification.algorithm": algorithm} if algorithm else {}
    found = CLIENTS[client]({"security.protocol": "sasl_ssl", **wanted})
    assert found["security_protocol"] == "SASL_SSL"
    assert found["ssl_context"].check_hostname is compared
    assert found["ssl_context"].verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.pem", "security.protocol"])
def test_scenarios_are_written_down_so_they_hold_no_secrets(name: str) -> None:
    with pytest.raises(ScenarioError, match="give SASL and TLS with --cluster-config"):
        Group(config={name: SECRET})


def test_what_is_to_be_cleaned_goes_through_a_pipe_and_comes_out_the_same() -> None:
    task = CleanupTask({1: Endpoint("h", 9092)}, {"sasl.password": SECRET}, "fencepost-1-", {2: (3, 1)})
    again = CleanupTask.from_json(task.to_json())
    assert (again.brokers, again.access, again.prefix) == (task.brokers, task.access, task.prefix)
    assert {p: tuple(order) for p, order in again.replicas.items()} == task.replicas


# --- the group's log as clients may read it ----------------------------------------------------------------------


def batch(first: int, records: int, kept: int | None = None) -> bytes:
    """The head of a batch; ``kept``: how many records the compaction left."""
    about = struct.pack(">ibihi", 0, 2, 0, 0, records - 1) + bytes(30) + struct.pack(">i", kept or records)
    return struct.pack(">qi", first, len(about)) + about


def test_a_batch_that_is_cut_off_is_no_batch() -> None:
    both = batch(0, 2) + batch(2, 1)
    assert list(whole_batches(both)) == [batch(0, 2), batch(2, 1)]
    assert list(whole_batches(both[:-1])) == [batch(0, 2)]
    assert list(whole_batches(both[:5])) == []


class Leader:
    """Gives batches from an offset on, two at a time."""

    def __init__(self, end: int, *batches: bytes) -> None:
        self.end, self.kept = end, batches

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {0: self.end}

    def batches(self, place: Any, offset: int) -> bytes:
        spans = [(struct.unpack_from(">q", b)[0] + struct.unpack_from(">i", b, 23)[0], b) for b in self.kept]
        return b"".join([b for last, b in spans if last >= offset][:2])


def read_from(since: int, leader: Leader) -> list[bytes]:
    evidence = ForeignEvidence(None, leader, 0, "")  # type: ignore[arg-type]
    evidence._since = since
    return list(evidence._batches())


def test_what_was_written_during_the_run_is_read_whole() -> None:
    kept = [batch(3, 2), batch(5, 1), batch(6, 4), batch(10, 1)]
    assert read_from(4, Leader(11, *kept)) == kept
    assert read_from(11, Leader(11, *kept)) == []


@pytest.mark.parametrize(
    "kept",
    [[batch(0, 2), batch(3, 1)], [batch(0, 2), batch(2, 2, kept=1)], [batch(1, 3)]],
    ids=["a batch is gone", "a record is gone", "the first is gone"],
)
def test_what_was_compacted_during_the_run_is_no_evidence(kept: list[bytes]) -> None:
    with pytest.raises(NotShown, match="was compacted during the run"):
        read_from(0, Leader(4, *kept))


class Refusing(Leader):
    """Refuses, or fails."""

    def __init__(self, why: ClusterError) -> None:
        super().__init__(1)
        self.why = why

    def batches(self, place: Any, offset: int) -> bytes:
        raise self.why


@pytest.mark.parametrize(
    ("why", "kind"),
    [(NotAuthorized("reading it was refused"), NotShown), (ClusterError("TopicAuthorizationFailedError"), NotRead)],
)
def test_only_a_right_that_is_lacking_hides_the_log(tmp_path: Path, why: ClusterError, kind: type[NotShown]) -> None:
    with ProcessOwner.open(tmp_path) as owner:
        evidence = ForeignEvidence(owner, Refusing(why), 0, "")  # type: ignore[arg-type]
        evidence._since = 0
        with pytest.raises(NotShown, match=f"__consumer_offsets-0 could not be read: {why}") as raised:
            list(evidence.dump("__consumer_offsets", 0))
    assert raised.type is kind


@pytest.mark.parametrize("code", [29, 30, 31, 53])
def test_lack_of_a_right_is_told_by_the_number_of_the_error(code: int) -> None:
    with pytest.raises(NotAuthorized, match=r"reading it was refused: .*AuthorizationFailedError"):
        refuse(SimpleNamespace(error_code=code), "reading it")
    with pytest.raises(ClusterError) as other:
        refuse(SimpleNamespace(error_code=3), "reading it")
    assert not isinstance(other.value, NotAuthorized)


def test_an_advertised_address_that_leads_to_another_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    staging, advertised = Endpoint("127.0.0.1", 19092), Endpoint("127.0.0.1", 9092)
    found = {staging: Discovered("staging", {1: advertised}), advertised: Discovered("production", {1: advertised})}
    monkeypatch.setattr(examination, "discover", lambda address, access: found[address])
    with pytest.raises(
        PlanError, match=r"has the id staging, but 127\.0\.0\.1:9092, .* leads to the cluster production"
    ):
        examination.reach(Attachment.of(f"attach:{staging}"), [])
    found[advertised] = Discovered("staging", {1: advertised})
    assert examination.reach(Attachment.of(f"attach:{staging}"), []) == found[staging]


def test_a_dry_run_describes_a_listed_cluster_and_names_containers_that_need_not_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = examination.Examined("an id", {1: Endpoint("127.0.0.1", 9092)}, [], {}, "")
    monkeypatch.setattr(examination, "examine", lambda *_: found)
    sentences = {
        about: replace(Attachment.of("attach:127.0.0.1:9092"), allowed=AllowList(Path("list"), clusters)).examine(
            SCENARIO, PLAN, quiet
        )[0]
        for about, clusters in {"listed": {"an id": "staging"}, "container": {}}.items()
    }
    assert sentences == {
        "listed": "the cluster has the id an id (staging), and the brokers 1 at 127.0.0.1:9092",
        "container": "the cluster has the id an id, and the brokers 1 at 127.0.0.1:9092",
    }


class Asked:
    """Answers what is asked before a run, and during the start of one."""

    def __init__(self, *_: Any) -> None: ...

    def coordinator(self, group: str) -> int:
        return 1

    def settings(self, broker: int, names: Any) -> dict[str, str]:
        return {}

    def replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        return dict.fromkeys(range(50), (4, 1))

    def end_offsets(self, topic: str) -> dict[int, int]:
        return dict.fromkeys(range(50), 0)

    def close(self) -> None: ...


BROKERS = {n: Endpoint("127.0.0.1", 9090 + n) for n in (1, 2, 3)} | {4: Endpoint("10.1.2.3", 9094)}


@pytest.fixture
def four_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers 1 to 3 are behind addresses of this machine, but only broker 1 is known to be a process of it."""
    monkeypatch.setattr(examination, "discover", lambda address, access: Discovered("an id", BROKERS))
    monkeypatch.setattr(examination, "runs_here", lambda at: at == BROKERS[1])
    monkeypatch.setattr(examination, "ObserverAdmin", Asked)
    monkeypatch.setattr(examination.rights, "check", lambda *_: "")


@pytest.mark.usefixtures("four_brokers")
def test_only_processes_and_containers_of_this_machine_have_its_clock() -> None:
    near = replace(Attachment.of("attach:127.0.0.1:9091"), permitted=True)
    assert examination.examine(near, SCENARIO, PLAN).other_clocks == [2, 3, 4], "2 and 3 may be forwarded ports"
    handed_in = replace(near, published=[PublishedPort(BROKERS[2], "an id", "kafka")])
    assert examination.examine(handed_in, SCENARIO, PLAN).other_clocks == [3, 4]


@pytest.mark.usefixtures("four_brokers")
def test_clocks_are_read_unless_all_of_them_are_this_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    class Watch:
        def __init__(self, brokers: Any, *_: Any) -> None:
            read.append(brokers)

        def begin(self, progress: Any) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(cluster, "ClockWatch", Watch)
    monkeypatch.setattr(cluster, "ObserverAdmin", Asked)
    monkeypatch.setattr(cluster.environments, "interpreters", lambda *_: [])
    monkeypatch.setattr(cluster, "CleanupProcess", lambda *_: SimpleNamespace(finish=lambda within_s: []))
    monkeypatch.setattr(ForeignEvidence, "begin", lambda *_: None)
    near = replace(Attachment.of("attach:127.0.0.1:9091"), permitted=True)
    calm = replace(SCENARIO, schedule=())
    with ProcessOwner.open() as owner:
        near.start(calm, calm.plan(1), owner, quiet).stop()
        assert read == [{4: BROKERS[4], 1: BROKERS[1]}], "those that may coordinate the group"
        monkeypatch.setattr(examination, "discover", lambda *_: Discovered("an id", {1: BROKERS[1]}))
        near.start(calm, calm.plan(1), owner, quiet).stop()
    assert len(read) == 1


def test_links_to_brokers_of_other_hosts_are_refused_before_anything_is_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        examination, "discover", lambda address, access: Discovered("an id", {1: Endpoint("10.1.2.3", 9092)})
    )
    far = replace(Attachment.of("attach:10.1.2.3:9092"), permitted=True)
    hole = replace(SCENARIO, schedule=[at(1, BlackHole(), member(0), heal_after=1)])
    with (
        ProcessOwner.open() as owner,
        pytest.raises(PlanError, match=r"only where brokers are on this machine, but there are 10\.1\.2\.3"),
    ):
        far.start(hole, hole.plan(1), owner, quiet)
