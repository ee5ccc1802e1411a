"""The consumers of one life: which of them are there, when and how each ended, and what a signal to a program hits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from fencepost.clock import eventually
from fencepost.faults import RemoveMember
from fencepost.group import process_consumers
from fencepost.group.process_consumers import ProcessConsumers
from fencepost.group.programs import ProcessGroup
from fencepost.interfaces import Target
from fencepost.model import MemberView, TopicPartition, View
from fencepost.processes.owner import ProcessOwner, wait_ended
from fencepost.witnesses.processes import STOPPED, ProcessIdentity
from fencepost_member.config import MemberConfig
from fencepost_member.instrument.consumer_names import claim
from fencepost_member.names import PLACES, name, parse
from fencepost_member.process import event_file
from fencepost_member.recording.events import EventLog

WITHIN_S = 20.0
PID = 1_000_000  # nobody's
FORKS = """
import os, signal, sys
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b".")
    signal.pause()
os.read(reading, 1)
open(sys.argv[1], "w").close()
signal.pause()
"""


def test_a_name_says_which_consumer_it_is() -> None:
    named = [("", 1, "member-2.1"), ("b", 1, "member-2b.1"), ("", 2, "member-2.1-2"), ("c", 12, "member-2c.1-12")]
    for place, number, text in named:
        assert name("member-2.1", place, number) == text
        assert parse("member-2.1", text) == (place, number)
    others = ["member-2.2", "member-2.11", "member-22.1", "member-2.1-process-7", "member-2.1-1", "member-2a.1", "x"]
    assert [parse("member-2.1", text) for text in others] == [None] * len(others)


def test_the_first_free_place_is_claimed_until_it_is_released(tmp_path: Path) -> None:
    config = MemberConfig("member-2.1", 2, 2, str(tmp_path), "g", {}, "", instance_id="id")
    first, second = claim(config, tmp_path), claim(config, tmp_path)
    assert first is not None
    assert second is not None
    assert [(c.name, c.instance_id) for c in (first, second)] == [("member-2.1", "id"), ("member-2b.1", "id-b")]
    first.release()
    first = claim(config, tmp_path)
    assert first is not None
    assert first.name == "member-2.1"  # nobody used it
    event_file(config.run, first.name).parent.mkdir()
    event_file(config.run, first.name).touch()
    first.release()
    all_others = [claim(config, tmp_path) for _ in PLACES[1:]]
    assert all_others[0] is not None
    assert all_others[0].name == "member-2.1-2"
    assert claim(config, tmp_path) is None


class Consumers:
    """Those of the life ``member-0.1``, which tell what a test lets them tell."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.at_ns = folder, 0
        self.inside = ProcessConsumers(folder, "member-0.1", PID, True)

    def tells(self, actor: str, kind: str, **fields: object) -> None:
        self.at_ns += 10
        times = {"begin_ns": self.at_ns, "end_ns": self.at_ns}
        log = EventLog(self.folder / f"{actor}.jsonl", actor)
        log.note(kind, **{**times, **fields})
        log.close()
        self.inside.refresh()

    def starts(self, actor: str, pid: int = PID) -> None:
        self.tells(actor, "started", detail={"pid": pid})


@pytest.fixture
def consumers(tmp_path: Path) -> Consumers:
    return Consumers(tmp_path)


def test_who_is_there_owns_what_it_was_given_beside_others(consumers: Consumers) -> None:
    consumers.starts("member-0.1")
    consumers.starts("member-0b.1")
    consumers.tells("member-0.1-process-9", "unrecorded")
    for partition, actor in enumerate(("member-0.1", "member-0b.1")):
        consumers.tells(actor, "assigned", partitions=[("orders", partition)], member_id=actor)
    assert {actor: [*live.owned] for actor, live in consumers.inside.present.items()} == {
        "member-0.1": [TopicPartition("orders", 0)],
        "member-0b.1": [TopicPartition("orders", 1)],
    }
    assert len(consumers.inside.owned) == 2
    assert consumers.inside.ids == {"member-0.1", "member-0b.1"}
    consumers.tells("member-0.1", "closed")
    assert consumers.inside.owned == {TopicPartition("orders", 1)}
    assert [e["actor"] for e in consumers.inside.reported("assigned")] == ["member-0.1", "member-0b.1"]


def test_each_consumer_is_described_by_what_it_owns_and_all_of_them_by_their_errors(consumers: Consumers) -> None:
    assert consumers.inside.describe() == "member-0.1 owns nothing"
    consumers.starts("member-0.1")
    consumers.tells("member-0.1", "error", error="UNKNOWN_MEMBER_ID", detail={})
    assert consumers.inside.describe() == "member-0.1 owns nothing, and its client reported UNKNOWN_MEMBER_ID (1 times)"
    consumers.starts("member-0b.1")
    consumers.tells("member-0b.1", "assigned", partitions=[("orders", 1), ("orders", 0)])
    assert consumers.inside.describe() == (
        "member-0.1 owns nothing; member-0b.1 owns orders-0, orders-1, "
        "and their clients reported UNKNOWN_MEMBER_ID (1 times)"
    )


def test_a_consumer_ends_when_it_is_closed_or_dropped_and_the_last_one_with_its_process(consumers: Consumers) -> None:
    consumers.starts("member-0.1")
    assert consumers.inside.ends("crashed", 0) == {"member-0.1": (0, "crashed")}
    consumers.tells("member-0.1", "closed")
    assert consumers.inside.ends("crashed", 0) == {"member-0.1": (0, "crashed")}
    consumers.starts("member-0.1-2")
    assert not consumers.inside.ends("killed", 1)["member-0.1-2"][0]
    consumers.starts("member-0.1-3")
    assert consumers.inside.ends("killed", 41) == {
        "member-0.1": (20, "closed"),
        "member-0.1-2": (40, "crashed"),
        "member-0.1-3": (0, "killed"),
    }
    assert [*consumers.inside.present] == ["member-0.1-3"]
    consumers.tells("member-0.1-3", "closed")
    assert consumers.inside.ends("closed", 1)["member-0.1-3"] == (0, "closed")


@pytest.mark.parametrize(("asked_ns", "how"), [(0, "crashed"), (1, "killed"), (1 << 62, "crashed")])
def test_who_ends_with_a_process_of_its_own_has_ended_then(consumers: Consumers, asked_ns: int, how: str) -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    consumers.starts("member-0.1", child)
    consumers.starts("member-0b.1")
    assert [*consumers.inside.present] == ["member-0.1", "member-0b.1"]
    os.kill(child, signal.SIGKILL)

    def seen() -> bool:
        consumers.inside.refresh()
        return [*consumers.inside.present] == ["member-0b.1"]

    eventually(seen, WITHIN_S, "its end to be seen, although nobody has reaped it")
    os.waitpid(child, 0)
    ends = consumers.inside.ends("killed", asked_ns)
    assert ends["member-0.1"][0] > 0
    assert (ends["member-0.1"][1], ends["member-0b.1"]) == (how, (0, "killed"))
    assert consumers.inside.strays == {child}  # of our group, not of that of the process ``PID``


def test_nobody_knows_which_of_several_is_to_be_removed_from_the_group() -> None:
    one = MemberView(0, 0, "member-0.1", True, consumers=("member-0.1", "member-0b.1"))
    world: Any = SimpleNamespace(view=lambda: View((one,), (), {}, 1))
    assert "member-0 has several consumers" in RemoveMember().not_ready_reason(world, Target(members=(0,)))


class Program:
    """A program that forks, as a node that faults can hit."""

    name = "member-0"

    def __init__(self, family: ProcessGroup, child: int) -> None:
        self.family, self.child = family, child

    @property
    def pid(self) -> int:
        return self.family.pid


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[Program]:
    (tmp_path / "forks.py").write_text(FORKS, encoding="utf-8")
    ready = tmp_path / "ready"
    with ProcessOwner.open(tmp_path) as owner:
        argv = [sys.executable, tmp_path / "forks.py", ready]
        family = ProcessGroup(owner.spawn(argv, log=tmp_path / "log"))
        eventually(ready.exists, WITHIN_S, "the program to fork")
        (child,) = psutil.Process(family.pid).children()
        yield Program(family, child.pid)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_what_stops_a_program_stops_what_it_forked(forks: Program) -> None:
    life = ProcessIdentity.of(forks)  # type: ignore[arg-type]
    forks.family.send_signal(signal.SIGSTOP)
    eventually(lambda: life.state() == STOPPED, WITHIN_S, "both to be stopped")
    os.kill(forks.child, signal.SIGCONT)
    eventually(lambda: life.state() != STOPPED, WITHIN_S, "one of them to be seen awake")
    forks.family.send_signal(signal.SIGCONT)
    assert forks.family.poll() is None


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_program_forked_ends_with_it(forks: Program, sent: int) -> None:
    forks.family.send_signal(sent)
    assert wait_ended(forks.family, WITHIN_S) == -sent
    eventually(lambda: gone(forks.child), WITHIN_S, "its child to be gone")


def test_a_process_in_a_container_is_known_here_by_another_number() -> None:
    forks = ["unshare", "--pid", "--fork", "sh", "-c", "sleep 60 & exec sleep 60"]
    with subprocess.Popen(forks, stderr=subprocess.DEVNULL) as outside:
        try:
            family = psutil.Process(outside.pid)
            both = eventually(
                lambda: len(family.children(recursive=True)) == 2 or outside.poll() is not None, 20, "both to be there"
            )
            assert both
            if outside.poll() is not None:
                pytest.skip("this user may make no namespace of process ids")
            first, second = family.children(recursive=True)
            assert [process_consumers._here(first.pid, reported) for reported in (1, 2)] == [first.pid, second.pid]
            assert [process_consumers._in_container(pid) for pid in (first.pid, second.pid, outside.pid)] == [
                True,
                True,
                False,
            ]
            with pytest.raises(psutil.NoSuchProcess):
                process_consumers._here(first.pid, 99)
        finally:
            for process in (*family.children(recursive=True), family):
                with suppress(psutil.NoSuchProcess):  # what is in the namespace ends with its first process
                    process.kill()
    assert not process_consumers._in_container(outside.pid), "nobody knows any more"


def test_whose_container_is_gone_before_it_was_met_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_consumers, "_in_container", lambda pid: True)
    consumers = Consumers(tmp_path)
    consumers.starts("member-0.1", pid=1)  # here it is another one
    assert not consumers.inside.strays
    assert not consumers.inside.present
