"""Members and producers as real processes in a real group, each behind its own proxies."""

from __future__ import annotations

import itertools
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fencepost.clock import eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import MemberError
from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost.group import running_group as groups
from fencepost.model import TopicPartition
from fencepost.model.run_names import RunNames
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario import scenario
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import EventLog, read
from fencepost_member.recording.segments import DELIVERED, PRODUCED, Layout

pytestmark = pytest.mark.cluster

PARTITIONS = 8
SESSION_MS = 6000  # a busy machine must not evict anybody
LONG_S = 60  # for what comes at once on a machine that has nothing else to do
NEVER = 1 << 62
ENOUGH, ENOUGH_COMMITS = 500, 20  # without which a test would tell nothing
_NUMBERS = itertools.count()
PROTOCOLS = ("eager", "cooperative", "consumer")


def group_spec(protocol: str, members: int = 4, **more: Any) -> scenario.Group:
    config = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500, **more.pop("config", {})}
    return scenario.Group(protocol=protocol, members=members, config=config, **more)


class Run:
    """A group on a topic of its own, and everything that it left in its run folder."""

    def __init__(self, cluster: ManagedCluster, owner: ProcessOwner, folder: Path, name: str) -> None:
        self.cluster, self.name, self.topic = cluster, name, f"orders-{name}"
        self.history = folder / "history"
        events = EventLog(self.history / "events" / "harness.jsonl", "harness")
        self.home = groups.RunPaths(owner, events, self.history, folder / "logs")
        cluster.admin.create_topics([scenario.Topic(self.topic, PARTITIONS)])
        self.topics = {self.topic: {p: p for p in range(PARTITIONS)}}
        self.group: groups.RunningGroup

    def make(self, spec: scenario.Group, workload: PollLoop) -> groups.RunningGroup:
        group = groups.make(
            self.home, self.cluster, spec, workload, names=RunNames(self.name), topics=self.topics, seed=1
        )
        self.group = group
        return group

    def all_owned_by(self, *indices: int) -> None:
        def owned() -> bool:
            self.group.refresh()
            parts = [self.group.members[i].owned for i in indices]
            return all(parts) and sum(map(len, parts)) == PARTITIONS == len(frozenset().union(*parts))

        eventually(owned, LONG_S, f"members {indices} to own all partitions between them", state=self.owners)

    def owners(self) -> str:
        return ", ".join(f"{m.actor}: {sorted(tp.partition for tp in m.owned)}" for m in self.group.members)

    def stop_producers(self) -> None:
        """Let enough be written and committed to tell something, however slow the machine is, then stop them."""

        def there() -> dict[str, int]:
            ok = [commit for commit in self.events("commit") if commit["outcome"] == "ok"]
            return {"records": len(self.records(PRODUCED, live=True)), "commits": len(ok)}

        eventually(
            lambda: there()["records"] > ENOUGH and there()["commits"] > ENOUGH_COMMITS,
            LONG_S,
            f"more than {ENOUGH} records and {ENOUGH_COMMITS} commits",
            state=lambda: str(there()),
        )
        assert self.group.stop_producers(LONG_S) == []

    def drained(self) -> None:
        acked = self.offsets_acked(live=True)

        def done() -> bool:
            committed = self.cluster.admin.committed(self.name)
            ends = {TopicPartition(self.topic, tp): max(offsets) + 1 for tp, offsets in acked.items()}
            return all(committed.get(tp) == end for tp, end in ends.items())

        eventually(
            done, LONG_S, "the group to commit everything", state=lambda: str(self.cluster.admin.committed(self.name))
        )

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The last line of every event of a kind, of all actors."""
        last: dict[tuple[str, str, int], dict[str, Any]] = {}
        for path in sorted((self.history / "events").glob("*.jsonl")):
            found = read(path)
            assert not found.damage
            last.update({(path.name, event["actor"], event["id"]): event for event in found.events})
        return [event for event in last.values() if event["kind"] == kind]

    def records(self, layout: Layout, *, live: bool = False, actor: str = "") -> np.ndarray:
        """What the recorders hold (of one actor); ``live``: while somebody may still be writing."""
        segments, none = read_segments(self.history / "segments")
        assert not none
        assert live or {segment.path.name: segment.damage for segment in segments if segment.damage} == {}
        wanted = (s for s in segments if s.header.layout is layout and actor in ("", s.header.actor))
        return np.concatenate([s.records for s in wanted])

    def offsets_acked(self, *, live: bool = False) -> dict[int, set[int]]:
        sent = self.records(PRODUCED, live=live)
        return offsets_by_partition(sent[sent["acked_ns"] > 0])

    def holdings(self) -> dict[int, list[tuple[int, int, str]]]:
        """For each partition the certain intervals of ownership, from an assigned's end to the give-up's start."""
        died = {e["actor"]: e["begin_ns"] for e in self.events("ended")}
        marks = sorted(
            (e for kind in ("assigned", "revoked", "lost") for e in self.events(kind)), key=lambda e: e["begin_ns"]
        )
        held: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        open_since: dict[tuple[str, int], int] = {}
        for mark in marks:
            for _, partition, _ in mark["partitions"]:
                if mark["kind"] == "assigned":
                    assert (mark["actor"], partition) not in open_since
                    open_since[mark["actor"], partition] = mark["end_ns"]
                else:
                    since = open_since.pop((mark["actor"], partition))
                    held[partition].append((since, mark["begin_ns"], mark["actor"]))
        for (actor, partition), since in open_since.items():
            held[partition].append((since, died.get(actor, NEVER), actor))
        return {partition: sorted(intervals) for partition, intervals in held.items()}


def offsets_by_partition(records: np.ndarray) -> dict[int, set[int]]:
    return {int(tp): set(records["offset"][records["tp"] == tp].tolist()) for tp in np.unique(records["tp"])}


@pytest.fixture
def run(
    cluster: ManagedCluster, session_owner: ProcessOwner, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Run]:
    name = (
        "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:30] + f"-{next(_NUMBERS)}"
    )
    running = Run(cluster, session_owner, tmp_path, name)
    yield running
    running.group.kill()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_change_hands_without_loss_when_members_come_die_and_leave(run: Run, protocol: str) -> None:
    group = run.make(group_spec(protocol), PollLoop(rate_hz=2000))
    late, killed, leaver = group.members[3], group.members[0], group.members[1]
    for member in group.members[:3]:
        member.launch()
    group.start_producers()
    for member in group.members[:3]:
        member.start()
    run.all_owned_by(0, 1, 2)
    late.start()
    run.all_owned_by(0, 1, 2, 3)
    killed.signal(signal.SIGKILL)
    assert killed.wait_ended(LONG_S) == -signal.SIGKILL
    run.all_owned_by(1, 2, 3)
    leaver.signal(signal.SIGTERM)
    assert leaver.wait_ended(LONG_S) == 0
    run.all_owned_by(2, 3)
    run.stop_producers()
    run.drained()
    assert group.stop_members(LONG_S) == []

    ended = {e["actor"]: e["detail"]["how"] for e in run.events("ended")}
    assert ended == {
        **dict.fromkeys(("member-1.1", "member-2.1", "member-3.1", "producer-0"), "closed"),
        "member-0.1": "killed",
    }
    assert {e["actor"] for e in run.events("closed")} == ended.keys() - {"member-0.1"}
    assert {e["actor"] for e in run.events("launched")} == {e["actor"] for e in run.events("started")} == ended.keys()
    must_hand_over_cleanly(run, protocol)
    must_have_processed_everything(run)
    must_have_recorded_commits(run)


def must_hand_over_cleanly(run: Run, protocol: str) -> None:
    """Nobody certainly owned what another one owned, and the events tell which interval was which."""
    holdings = run.holdings()
    assert sorted(holdings) == list(range(PARTITIONS))
    for intervals in holdings.values():
        for (_, given_up, _), (taken, _, _) in itertools.pairwise(intervals):
            assert given_up <= taken
    for event in run.events("assigned"):
        assert {f"{t}-{p}" for t, p, _ in event["partitions"]} == set(event["detail"]["intervals"])
        assert event["begin_ns"] <= event["end_ns"]
        assert event["generation"] > 0
        assert event["member_id"]
    delivered = run.records(DELIVERED)
    assert (delivered["interval"] >= 0).all()
    assert bool(partial_revocations(run)) == (protocol != "eager")


def partial_revocations(run: Run) -> list[dict[str, Any]]:
    """Revoked callbacks after which the member kept something."""
    callbacks = [e for kind in ("assigned", "revoked", "lost") for e in run.events(kind)]
    owned: dict[str, set[int]] = defaultdict(set)
    partial = []
    for event in sorted(callbacks, key=lambda e: e["begin_ns"]):
        places = {partition for _, partition, _ in event["partitions"]}
        if event["kind"] == "assigned":
            owned[event["actor"]] |= places
        else:
            owned[event["actor"]] -= places
            partial += [event] if owned[event["actor"]] else []
    return partial


def must_have_processed_everything(run: Run) -> None:
    acked, delivered = run.offsets_acked(), run.records(DELIVERED)
    sent = run.records(PRODUCED)
    assert (sent["acked_ns"] > 0).all()
    assert (np.bincount(sent["writer"]) == [len(np.unique(sent["seq"]))]).all()
    assert len(sent) > ENOUGH
    assert offsets_by_partition(delivered[delivered["done_ns"] > 0]) == acked
    contents = {(int(r["tp"]), int(r["offset"])): (int(r["key"]), int(r["seq"])) for r in sent}
    for r in delivered:
        assert contents[int(r["tp"]), int(r["offset"])] == (int(r["key"]), int(r["seq"]))


def must_have_recorded_commits(run: Run) -> None:
    commits = run.events("commit")
    by_outcome: Mapping[str, list[Any]] = {o: [c for c in commits if c["outcome"] == o] for o in ("ok", "fail", "info")}
    assert len(by_outcome["ok"]) > ENOUGH_COMMITS
    assert all(c["error"] is None and c["end_ns"] > c["begin_ns"] for c in by_outcome["ok"])
    assert all(c["error"] for o in ("fail", "info") for c in by_outcome[o])
    assert "sync" in {c["detail"]["mode"] for c in commits}
    assert len({c["generation"] for c in by_outcome["ok"]}) > 2


def test_what_is_done_is_committed_when_partitions_are_given_up_and_when_a_member_leaves(run: Run) -> None:
    never = PollLoop(rate_hz=1000, commit_every_ms=3_600_000)
    group = run.make(group_spec("cooperative", members=2), never)
    group.members[0].start()
    group.start_producers()
    run.all_owned_by(0)

    def done_everywhere() -> bool:
        records = run.records(DELIVERED, live=True)
        return len(np.unique(records["tp"][records["done_ns"] > 0])) == PARTITIONS

    eventually(done_everywhere, LONG_S, "a record of every partition to be processed")
    assert run.cluster.admin.committed(run.name) == {}
    group.members[1].start()
    run.all_owned_by(0, 1)
    group.members[0].signal(signal.SIGTERM)
    assert group.members[0].wait_ended(LONG_S) == 0
    committed: dict[str, set[int]] = defaultdict(set)
    for commit in run.events("commit"):
        assert (commit["actor"], commit["outcome"]) == ("member-0.1", "ok")
        committed[commit["detail"]["mode"]] |= {partition for _, partition, _ in commit["partitions"]}
    assert committed.keys() == {"on-revoke", "on-close"}
    assert len(committed["on-revoke"]) == PARTITIONS // 2
    assert set().union(*committed.values()) == set(range(PARTITIONS))


def test_a_member_that_comes_back_is_a_new_incarnation_and_carries_on(run: Run) -> None:
    group = run.make(group_spec("cooperative", members=2, static=True), PollLoop(rate_hz=500, batch=1))
    group.start()
    run.all_owned_by(0, 1)
    group.members[1].signal(signal.SIGTERM)
    assert group.members[1].wait_ended(LONG_S) == 0
    assert group.members[1].pid is None
    group.members[1].start()
    assert group.members[1].actor == "member-1.2"
    run.all_owned_by(0, 1)
    run.stop_producers()
    run.drained()
    assert group.stop_members(LONG_S) == []
    must_have_processed_everything(run)
    started = {e["actor"]: e["detail"] for e in run.events("started")}
    assert started["member-1.2"]["instance_id"] == started["member-1.1"]["instance_id"] == f"{run.name}-member-1"


@pytest.mark.parametrize("commit", ["asynchronous", "auto", "before-processing"])
def test_every_commit_policy_finishes_everything_when_members_come_and_leave_cleanly(run: Run, commit: str) -> None:
    group = run.make(group_spec("cooperative", members=2), PollLoop(commit=commit, rate_hz=1000, handler_ms=0.2))
    group.members[0].start()
    group.start_producers()
    run.all_owned_by(0)
    group.members[1].start()
    run.all_owned_by(0, 1)
    group.members[0].signal(signal.SIGTERM)
    assert group.members[0].wait_ended(LONG_S) == 0
    run.all_owned_by(1)
    run.stop_producers()
    run.drained()
    assert group.stop_members(LONG_S) == []
    must_have_processed_everything(run)
    assert {c["outcome"] for c in run.events("commit")} >= {"ok"}


def test_a_member_with_a_setting_that_the_client_refuses_does_not_start_and_says_why(run: Run) -> None:
    group = run.make(group_spec("eager", members=1, config={"no.such.setting": "1"}), PollLoop())
    with pytest.raises(MemberError, match=r"(?s)exit code 2.*refuses the client settings.*no\.such\.setting"):
        group.members[0].start()
    assert [e["detail"]["how"] for e in run.events("ended")] == ["crashed"]


def test_a_static_member_that_was_replaced_tells_a_fatal_error_and_ends(run: Run) -> None:
    group = run.make(group_spec("eager", members=1, static=True), PollLoop())
    original = group.members[0]
    original.start()
    run.all_owned_by(0)
    replacement = {
        "topics": run.topics,
        "group": run.name,
        "bootstrap": run.cluster.bootstrap(1),
        "protocol": "eager",
        "client_config": group_spec("eager").client_configs[0],
        "instance_id": f"{run.name}-member-0",
    }
    twin = groups.MemberHandle(run.home, 1, 1, replacement)
    twin.start()
    assert original.wait_ended(LONG_S) == 3
    group.refresh()
    assert original.life is not None
    assert original.life.live.fatal == "FENCED_INSTANCE_ID"
    twin.signal(signal.SIGTERM)
    assert twin.wait_ended(LONG_S) == 0
