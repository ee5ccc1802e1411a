"""Programs that read aiokafka below its public calls, as frameworks do, and one that reads where nobody records it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import EFFECTS, broken, group, performed
from fencepost import Scenario, at, runner
from fencepost.faults import Kill
from fencepost.model import Validity, Verdict
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

PROGRAM = """
import asyncio, signal, sys
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

told = open("told", "a", buffering=1)
done, owns, committing = {}, False, asyncio.Lock()

class Listener(ConsumerRebalanceListener):
    async def on_partitions_revoked(self, revoked):
        global owns
        async with committing:
            owns = False

    async def on_partitions_assigned(self, assigned):
        global owns
        done.clear()
        owns = True

async def below_the_calls():
    '''As faust-streaming does.'''
    with consumer._fetcher._subscriptions.fetch_context():
        found = await consumer._fetcher.fetched_records(set(), timeout=0.2, max_records=20)
    return [record for part in found.values() for record in part]

async def in_turns():
    return [await consumer.getone()] + await below_the_calls()

async def where_nobody_looks():
    await asyncio.sleep(0.05)
    fetched, found = consumer._fetcher._records, []
    for tp, result in list(fetched.items()):
        found += result.getall(20)
        if not result.has_more():
            del fetched[tp]
            consumer._fetcher._notify(consumer._fetcher._wait_consume_future)
    return found

async def main():
    global consumer
    consumer = AIOKafkaConsumer(
        bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    consumer.subscribe(["orders"], listener=Listener())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    try:
        await consumer.start()
        while True:
            found = await READ()
            for record in found if owns else ():  # else others are given them
                if LEAVES_OUT and record.offset % 100 == 50:
                    continue
                print(record.topic, record.partition, record.offset, file=told)
                done[next(tp for tp in consumer.assignment() if tp.partition == record.partition)] = record.offset + 1
            async with committing:
                try:
                    owns and done and await consumer.commit(dict(done))
                except KafkaError as error:
                    print("commit failed:", error, file=sys.stderr)
    except asyncio.CancelledError:
        pass
    finally:
        await consumer.stop()

"""
SCENARIO = Scenario(
    name="reads below the calls of a client",
    topics=[topic("orders", 4)],
    brokers=1,
    group=group("aiokafka"),
    workload=OwnProgram(rate_hz=200),
    schedule=[at(3, Kill(), one_member(), heal_after=1)],
    min_records=1500,
)
BY_EFFECT = replace(SCENARIO, workload=OwnProgram(processed="effect", effects="fakes:told", rate_hz=200))


def judged(
    folder: Path, patch: pytest.MonkeyPatch, read: str, scenario: Scenario = SCENARIO, leaves_out: bool = False
) -> Verdict:
    head, tail = f"LEAVES_OUT = {leaves_out}\n", f"READ = {read}\nasyncio.run(main())\n"
    (folder / "program.py").write_text(head + PROGRAM + tail, encoding="utf-8")
    (folder / "fakes.py").write_text(EFFECTS, encoding="utf-8")
    (folder / "told").touch()
    patch.chdir(folder)
    return performed(scenario, folder)[1]


@pytest.mark.parametrize("read", ["below_the_calls", "in_turns"])
def test_what_a_framework_reads_below_the_calls_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    verdict = judged(tmp_path, monkeypatch, read)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]


def test_what_is_read_where_nobody_records_it_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "WARM_UP_S", 10.0)
    verdict = judged(tmp_path, monkeypatch, "where_nobody_looks", replace(SCENARIO, chaos_s=8, drain_s=10))
    assert verdict.validity is Validity.UNKNOWN
    assert not broken(verdict)
    (history,) = (check for check in verdict.checks if check.check == "history")
    assert "the program reads them through calls that are not recorded" in history.reason


def test_what_has_no_effect_is_lost_wherever_it_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "WARM_UP_S", 10.0)
    asked = replace(BY_EFFECT, schedule=(), chaos_s=8, drain_s=5)
    verdict = judged(tmp_path, monkeypatch, "where_nobody_looks", asked, leaves_out=True)
    assert broken(verdict) == {"unseen", "missing-effect"}
    (delivery,) = (check for check in verdict.checks if check.check == "delivery")
    assert {f.reason for f in delivery.findings if f.kind == "unseen"} == {"unrecorded"}
    examples = [example for f in delivery.findings for example in f.examples]
    assert all((example["offset"] - 50) % 100 == 0 for example in examples)
