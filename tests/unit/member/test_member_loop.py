"""The loop of a member, with a client that never says anything."""

from __future__ import annotations

import importlib
import signal
import threading
from dataclasses import replace

import pytest

from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost_member import adapters, loop, payload
from fencepost_member.config import ConfigError, LoopConfig, MemberConfig
from fencepost_member.loop import MemberLoop
from fencepost_member.process import ReloadSwitch, StallSwitch
from fencepost_member.recording.events import EventLog, read
from fencepost_member.recording.recorder import Recorder
from fencepost_member.recording.segments import FAILED, PARKED


class Silent:
    """A client whose polls are empty; it is asked to stop at the last of them."""

    version, settings = "0", {}

    def __init__(self, stop, polls):
        self._stop, self._left = stop, polls

    def subscribe(self, topics):
        """Nothing comes of it."""

    def poll(self, batch, within_s):
        self._left -= 1
        if not self._left:
            self._stop.set()
        return []

    def identity(self):
        """It is in no group."""
        return "", -1

    def close(self):
        """Nothing is open."""


@pytest.mark.parametrize(
    ("moments", "gaps"),
    [
        ([5, 1_000_000_005, 1_900_000_000], []),
        ([5, 1_000_000_006, 1_900_000_000, 4_000_000_000], [(5, 1_000_000_006), (1_900_000_000, 4_000_000_000)]),
        ([4_000_000_000], []),
    ],
)
def test_polls_that_are_more_than_a_second_apart_are_an_event(tmp_path, monkeypatch, moments, gaps):
    stop = threading.Event()
    monkeypatch.setattr(adapters, "connect", lambda config, member: Silent(stop, len(moments)))
    times = iter(moments)
    lane = Recorder(tmp_path, "member-0.1").lane()._replace(polled=lambda _: next(times))
    events = EventLog(tmp_path / "events.jsonl", "member-0.1")
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1")
    assert MemberLoop(config, lane, events, stop).run() == ""
    reported = [e for e in read(tmp_path / "events.jsonl").events if e["kind"] == "poll-gap"]
    assert [(e["begin_ns"], e["end_ns"]) for e in reported] == gaps


def test_a_client_that_commits_as_it_is_closed_is_not_asked_then_who_it_is(tmp_path, monkeypatch):
    stop, identities = threading.Event(), [("a", 1)]

    def connect(config, member):
        class Commits(Silent):
            def identity(self):
                return identities[-1]

            def close(self):
                identities.clear()
                member.committed({("orders", 0): 5}, {("orders", 0): ""})

        return Commits(stop, 1)

    monkeypatch.setattr(adapters, "connect", connect)
    lane, events = Recorder(tmp_path, "member-0.1").lane(), EventLog(tmp_path / "events.jsonl", "member-0.1")
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1")
    assert MemberLoop(config, lane, events, stop).run() == ""
    (reported,) = (e for e in read(tmp_path / "events.jsonl").events if e["kind"] == "commit")
    assert (reported["member_id"], reported["generation"]) == ("a", 1)


def test_who_is_told_reads_its_configuration_again_and_subscribes_to_what_is_there_now(tmp_path, monkeypatch):
    stop, asked = threading.Event(), []
    silent = Silent(stop, 4)
    monkeypatch.setattr(silent, "subscribe", asked.append)
    monkeypatch.setattr(adapters, "connect", lambda config, member: silent)
    topics = {"orders": {"0": 0}, "payments": {"0": 1}}
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", topics, "127.0.0.1:1", without=("orders",))
    reload = ReloadSwitch(lambda: replace(config, without=()))
    reload.listen()
    signal.raise_signal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    lane, events = Recorder(tmp_path, "member-0.1").lane(), EventLog(tmp_path / "events.jsonl", "member-0.1")
    assert MemberLoop(config, lane, events, stop, reload=reload).run() == ""
    assert asked == [["payments"], ["orders", "payments"]]
    *_, reported = (e for e in read(tmp_path / "events.jsonl").events if e["kind"] == "subscribed")
    assert reported["detail"] == {"topics": ["orders", "payments"]}
    assert 0 < reported["begin_ns"] <= reported["end_ns"]


HANDLER = """
seen = []

def handle(key, value):
    if value == b"poison":
        raise ValueError(value)
    seen.append((key, value))
"""


def test_the_users_handler_gets_key_and_value_of_each_record_and_ends_the_member_by_what_it_raises(
    tmp_path, monkeypatch
):
    (tmp_path / "handlers.py").write_text(HANDLER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    stop = threading.Event()
    silent = Silent(stop, 4)
    written = [(payload.HEADER, payload.pack(7, seq, 5)) for seq in range(3)]
    values = [b"a", b"b", b"poison"]
    polls = iter([[("orders", 0, n, b"5", values[n], [written[n]]) for n in range(3)]])
    monkeypatch.setattr(silent, "poll", lambda most, within_s: next(polls))
    monkeypatch.setattr(adapters, "connect", lambda config, member: silent)
    loop = LoopConfig(handler="handlers:handle")
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1", loop=loop)
    recorder, events = Recorder(tmp_path / "segments", "member-0.1"), EventLog(tmp_path / "events.jsonl", "member-0.1")
    with pytest.raises(ValueError, match="poison"):
        MemberLoop(config, recorder.lane(), events, stop).run()
    assert importlib.import_module("handlers").seen == [(b"5", b"a"), (b"5", b"b")]
    (segment,), damaged = read_segments(tmp_path / "segments")
    rows = segment.records
    assert not damaged
    assert [(r["key"], r["writer"], r["seq"]) for r in rows] == [(5, 7, 0), (5, 7, 1), (5, 7, 2)]
    assert [bool(r["done_ns"]) for r in rows] == [True, True, False]
    assert all(r["begin_ns"] for r in rows)


@pytest.mark.parametrize("keeps_order", [False, True])
def test_what_cannot_be_processed_is_parked_and_its_letter_written_before_the_commit(
    tmp_path, monkeypatch, keeps_order
):
    stop, story, taken, keys = threading.Event(), [], [], set()
    silent = Silent(stop, 4)
    polls = iter([[("orders", 0, n, b"5", payload.pack(7, n, 5), None) for n in range(4)], []])

    def poll(most, within_s):
        records = next(polls)
        if not records:
            stop.set()
        return records

    monkeypatch.setattr(silent, "poll", poll)
    monkeypatch.setattr(silent, "identity", lambda: ("m", 1), raising=False)
    monkeypatch.setattr(adapters, "connect", lambda config, member: silent)

    class Parked:
        add = staticmethod(lambda tp, offset, key: keys.add(key))
        holds = staticmethod(lambda tp, key: key in keys)
        assigning = staticmethod(taken.extend)

    class Output:
        settings, identity = {}, staticmethod(lambda: ("m", 1))
        start = close = staticmethod(lambda: None)
        parked = Parked
        write = staticmethod(lambda tp, offset, *content: story.append(offset))

        @staticmethod
        def commit(offsets):
            story.append(offsets)
            return dict.fromkeys(offsets, "")

    monkeypatch.setattr(adapters, "written", lambda *of_loop: Output)
    loop = LoopConfig(into="dead", on_failure="park", poison_every=2, commit_every_ms=0, keep_order=keeps_order)
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1", loop=loop)
    recorder, events = Recorder(tmp_path / "segments", "member-0.1"), EventLog(tmp_path / "events.jsonl", "member-0.1")
    member = MemberLoop(config, recorder.lane(), events, stop)
    # A client may tell what it was assigned while it closes; nobody parks by then, nor knows who did.
    monkeypatch.setattr(silent, "close", lambda: member.assigned([("orders", 0)], lambda: None))
    member.assigned([("orders", 0)], lambda: None)
    assert member.run() == ""
    (segment,), _ = read_segments(tmp_path / "segments")
    outcomes = [0, PARKED, PARKED, PARKED] if keeps_order else [0, PARKED, 0, PARKED]
    assert segment.records["outcome"].tolist() == outcomes
    assert [bool(done_ns) for done_ns in segment.records["done_ns"]] == [True] * 4
    letters = [1, 2, 3] if keeps_order else [1, 3]
    reported = [[*([n] if n in letters else []), {("orders", 0): n + 1}] for n in range(4)]
    assert story[: 4 + len(letters)] == [one for each in reported for one in each]
    assert taken == ([("orders", 0)] if keeps_order else [])


class Leaving:
    """A client that hands out four records from where was committed, and is stopped when all are. It gives partitions
    up in the poll after it was asked to, or never."""

    version, settings = "0", {}

    def __init__(self, stop, stays):
        self._stop, self._stays = stop, stays
        self.member, self.told, self.committed = None, [], 0
        self._owns, self._wants = False, False

    def subscribe(self, topics):
        self.told.append(topics)
        self._wants = True

    def unsubscribe(self):
        self.told.append("unsubscribed")
        self._wants = self._stays

    def poll(self, most, within_s):
        if self._owns != self._wants:
            self._owns = self._wants
            (self.member.assigned if self._owns else self.member.revoked)([("orders", 0)], lambda: None)
            return []
        return [("orders", 0, n, b"5", payload.pack(7, n, 5), None) for n in range(self.committed, 4)][:most]

    def commit(self, offsets):
        self.told.append(offsets)
        (self.committed,) = offsets.values()
        if self.committed == 4:
            self._stop.set()
        return dict.fromkeys(offsets, "")

    def identity(self):
        return "m", 1

    def close(self):
        """Nothing is open."""


class Slow(StallSwitch):
    """Each record's handler is slow; the second one's for too long, the first time."""

    def __init__(self):
        super().__init__()
        self.asked, self.allowed, self._in_time = True, [], iter([True, False])

    def wait(self, most_s):
        self.allowed.append(most_s)
        return next(self._in_time, True)


def relinquishing(tmp_path, monkeypatch, stall, stays=False):
    """The client of a member that may take 50 ms for a record."""
    stop = threading.Event()
    client = Leaving(stop, stays)
    monkeypatch.setattr(adapters, "connect", lambda config, member: client)
    slow = LoopConfig(deadline_ms=50, commit="after-batch")
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1", loop=slow)
    recorder, events = Recorder(tmp_path / "segments", "member-0.1"), EventLog(tmp_path / "events.jsonl", "member-0.1")
    client.member = MemberLoop(config, recorder.lane(), events, stop, stall)
    return client


def test_who_is_too_slow_with_a_record_gives_up_all_but_what_is_done_and_comes_back(tmp_path, monkeypatch):
    slow = Slow()
    client = relinquishing(tmp_path, monkeypatch, slow)
    assert client.member.run() == ""
    assert client.told == [["orders"], "unsubscribed", {("orders", 0): 1}, ["orders"], {("orders", 0): 4}]
    assert slow.allowed == [0.05] * 5
    (segment,), _ = read_segments(tmp_path / "segments")
    rows = segment.records
    assert rows["offset"].tolist() == [0, 1, 2, 3, 1, 2, 3]
    assert rows["outcome"].tolist() == [0, FAILED, 0, 0, 0, 0, 0]
    assert [bool(done_ns) for done_ns in rows["done_ns"]] == [True, True, False, False, True, True, True]
    *_, reported = (e for e in read(tmp_path / "events.jsonl").events if e["kind"] == "subscribed")
    assert reported["detail"] == {"topics": ["orders"], "relinquished": [["orders", 0]]}
    assert 0 < reported["begin_ns"] < reported["end_ns"]


def test_a_client_that_gives_nothing_up_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "RELINQUISH_S", 0.2)
    client = relinquishing(tmp_path, monkeypatch, Slow(), stays=True)
    with pytest.raises(TimeoutError, match=r"the client has not revoked \[\('orders', 0\)\] within 0.2 s"):
        client.member.run()


def test_a_slow_handler_waits_until_nobody_asks_for_it_or_its_time_is_over():
    slow = StallSwitch()
    assert slow.wait() is True
    slow.listen()
    signal.raise_signal(signal.SIGUSR1)
    assert slow.wait(0.02) is False
    waited = threading.Timer(0.05, signal.raise_signal, [signal.SIGUSR2])
    waited.start()
    assert slow.wait(30) is True
    waited.join()
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("loop", "known"),
    [
        (LoopConfig(planted_bug="sleepy", on_failure="park", into="dead"), "swallowed-errors, "),
        (LoopConfig(planted_bug="sleepy", on_failure="requeue"), "unwritten-copies, "),
        (LoopConfig(planted_bug="sleepy", into="done"), "offsets-first, "),
        (LoopConfig(planted_bug="sleepy", workers=2), "unawaited-workers, "),
    ],
)
def test_each_loop_has_bugs_of_its_own(tmp_path, loop, known):
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1", loop=loop)
    lane, events = Recorder(tmp_path, "member-0.1").lane(), EventLog(tmp_path / "events.jsonl", "member-0.1")
    with pytest.raises(ConfigError, match=f"planted_bug is 'sleepy', it must be one of {known}"):
        MemberLoop(config, lane, events, threading.Event())


def test_a_bug_that_nobody_knows_is_refused(tmp_path):
    loop = LoopConfig(planted_bug="sleepy")
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", {"orders": {"0": 0}}, "127.0.0.1:1", loop=loop)
    lane, events = Recorder(tmp_path, "member-0.1").lane(), EventLog(tmp_path / "events.jsonl", "member-0.1")
    with pytest.raises(ConfigError, match="planted_bug is 'sleepy', it must be one of seek-back, "):
        MemberLoop(config, lane, events, threading.Event())
