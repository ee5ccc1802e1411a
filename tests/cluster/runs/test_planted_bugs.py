"""A bug that is planted is found out, under exactly its kind, and by name; correct members, under the very same plan,
keep their promises.

Every bug under every protocol in the nightly run; in ``make test`` one of each promise, and a correct group under the
same plan.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from history.retelling import sealed_again

from cluster.doctored import DOCTORED
from cluster.plans import MOVES, STRICT, under, with_core
from cluster.planted import BUGS
from fencepost import checkers, runner
from fencepost.checkers import (
    Commits,
    Delivery,
    Effects,
    Order,
    Outside,
    Ownership,
    Parked,
    Progress,
    Rebalances,
    Recovers,
    Requeued,
)
from fencepost.clock import eventually
from fencepost.judging import judge
from fencepost.model import Severity, Validity
from fencepost_member.payload import pack

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

NOTES = {kind for bug in BUGS.values() for kind in bug.notes}
BETWEEN_TWO = {"duplicate-effect"}  # whoever was second may have done no wrong, if it had looked before the first wrote
WRITER = 9  # of records that no producer of the run writes
PLANS = {bug.plan.name: bug.plan for bug in reversed(BUGS.values())}  # of a name, the first
CONTROL = {bug.plan.name: bug.control for bug in BUGS.values()}


def shown(verdict, severity):
    return [f for check in verdict.checks for f in check.findings if f.severity is severity]


def named_by(kind, example):
    """Of whom at least one has the bug: who is named first, or any of the two."""
    members = example["members"] if kind in BETWEEN_TWO else example["members"][:1]
    return {member.partition(".")[0] for member in members}


def make_topics_anew(cluster, topics):
    """Delete topics, and make them again, as empty as they were at first."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    for deleted in admin.delete_topics([topic.name for topic in topics]).values():
        deleted.result(20)
    eventually(lambda: not any(cluster.admin.leaders(topic.name) for topic in topics), 20, "the topics to be gone")
    cluster.admin.create_topics(topics)


def write_again(cluster, topics):
    """The first record of a partition, as its producer wrote it."""
    reader = ck.Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": "a reader"})
    reader.assign([ck.TopicPartition(topics[0].name, 0, 0)])
    first = reader.poll(20)
    reader.close()
    write(cluster, topics, (first.key(), first.value()))


def write_out_of_order(cluster, topics):
    """Two records of one writer, the second one first."""
    write(cluster, topics, *((b"1", pack(WRITER, seq, 1)) for seq in (1, 0)))


def write(cluster, topics, *records):
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap()})
    for key, value in records:
        producer.produce(topics[0].name, value, key, 0)
        assert producer.flush(20) == 0


# What somebody does, and at the start of which part of a run, in which producers or members are still at work or not.
ACTS = {
    "make topics anew": ("_audit", make_topics_anew),
    "write again": ("_drain", write_again),
    "write out of order": ("_drain", write_out_of_order),
}


@pytest.fixture
def act(monkeypatch):
    """Lets somebody do something to the cluster during a run."""

    def acted(name, topics):
        part, do = ACTS[name]
        usual = getattr(runner._Run, part)

        def first(run, *arguments):
            do(arguments[-1], topics)
            usual(run, *arguments)

        monkeypatch.setattr(runner._Run, part, first)

    return acted


EVERY_BUG = [(name, protocol) for name, bug in BUGS.items() for protocol in bug.protocols]
CORE = {  # promise -> the bug that breaks it
    Delivery: ("wrong-start", "cooperative"),
    Order: ("stale-backlog", "eager"),
    Ownership: ("stale-backlog", "eager"),
    Progress: ("die-silently", "consumer"),
    Commits: ("wrong-start", "cooperative"),
    Rebalances: ("range-of-narrow-topics", "eager"),
    Recovers: ("commits-too-seldom", "cooperative"),
    Effects: ("offsets-later", "cooperative"),
    Parked: ("letter-per-attempt", "consumer"),
    Requeued: ("unwritten-copies", "eager"),
}
OTHERS = sorted((plan, protocol) for plan in set(PLANS) - {MOVES.name} for protocol in CONTROL[plan])
PLANS_OF_CORE = {BUGS[name].plan.name for name, _ in CORE.values()}
CONTROLS = [(plan, next(iter(CONTROL[plan]))) for plan in PLANS_OF_CORE - {MOVES.name}]


@pytest.mark.core
def test_each_promise_is_broken_by_a_bug_of_make_test_under_a_plan_that_correct_members_keep():
    promises = {getattr(checkers, name) for name in checkers.__all__} - {Outside}  # see test_black_box
    assert set(CORE) == promises
    assert all(set(BUGS[name].kinds) & set(promise.kinds) for promise, (name, _) in CORE.items())


@pytest.mark.parametrize(("name", "protocol"), with_core(EVERY_BUG, CORE.values()))
def test_a_planted_bug_is_found_under_its_kind_and_who_has_it_is_named(chaos, act, name, protocol):
    bug = BUGS[name]
    if bug.act:
        act(bug.act, bug.plan.topics)
    breaking = set(bug.kinds) - set(bug.notes)
    verdict = chaos.run(bug.scenario(protocol)).verdict
    found = shown(verdict, Severity.VIOLATION)
    assert breaking <= {f.kind for f in found} <= {*breaking, *bug.may_follow}
    assert set(bug.notes) <= {f.kind for f in shown(verdict, Severity.NOTE)}
    assert verdict.validity is (Validity.INVALID if breaking else Validity.VALID)
    # Nobody is named by some: who wrote a commit is not known for certain where the requests of several fit.
    named = [(f.kind, named_by(f.kind, example)) for f in found for example in f.examples if example["members"]]
    assert not [(kind, members) for kind, members in named if not members & bug.culprits]
    assert named or not breaking


@pytest.fixture
def correct(chaos):
    """Performs a plan with correct members, who are to keep its promises, and the strictest delivery at its level."""

    def performed(plan, protocol):
        delivery, *others = plan.promises
        strictest = STRICT if delivery.level == STRICT.level else delivery
        run = chaos.run(under(protocol, replace(plan, promises=(strictest, *others))))
        run.must_keep_its_promises()
        assert not [f for f in shown(run.verdict, Severity.NOTE) if f.kind in NOTES]
        return run

    return performed


@pytest.mark.parametrize(("name", "protocol"), with_core(OTHERS, CONTROLS))
def test_a_correct_member_keeps_its_promises_under_the_same_plan(correct, name, protocol):
    correct(PLANS[name], protocol)


@pytest.mark.parametrize("protocol", [pytest.param("eager", marks=pytest.mark.core), "cooperative", "consumer"])
def test_a_correct_member_keeps_them_too_but_not_in_doctored_evidence(correct, chaos_spark, tmp_path, protocol):
    run = correct(MOVES, protocol)
    for kind, doctor in DOCTORED.items():
        folder = shutil.copytree(run.folder, tmp_path / kind)
        doctor(folder)
        verdict = judge(sealed_again(folder), chaos_spark)
        if kind in (
            "history-incomplete",
            "unrecorded-delivery",
        ):  # no loss, and nobody's fault: but nothing is known for certain
            assert verdict.validity is Validity.UNKNOWN
            assert kind in {f.kind for f in shown(verdict, Severity.NOTE)}
        else:
            assert {f.kind for f in shown(verdict, Severity.VIOLATION)} == {kind}
