"""Ten histories in which Jepsen's checker of Kafka looks away, and what is wrong with each.

What is said of Jepsen is what the queue workload of its Kafka tests does (``jepsen.tests.kafka``, and the client of the
Redpanda and Bufstream suites). In short: one operation is one poll, which with ``subscribe`` commits before it ends, so
a record is consumed once a poll returned it; the last reads go through fresh clients that assign themselves every
partition and begin at the start; ``poll-skip`` and ``nonmonotonic-poll`` are allowed with ``subscribe``, for partitions
may move between polls; operations of the nemesis are left out of the analysis. It tests what a log and its transactions
promise, and does that well; these histories are about what a consumer group promises.

Each is judged under one promise at a time: the strict one that it breaks, and a weaker one that it keeps. ::

    make demonstrations      # writes their run folders with reports, and a page that leads to them
"""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import getdoc
from pathlib import Path
from typing import Any

from fencepost import judging
from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.history.run_folder import RunFolder
from fencepost.interfaces import Promise
from fencepost.model import Severity, Validity, Verdict, serialization
from history.builder import HistoryBuilder, MemberTeller

Tell = Callable[[HistoryBuilder], None]


@dataclass(frozen=True)
class Demonstration:
    """A story, and what each promise makes of it: how it ends, and exactly the kinds that break it."""

    tell: Tell
    verdicts: Mapping[Promise, tuple[Validity, frozenset[str]]]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """``A late commit of a zombie takes the group back``."""
        return self.tell.__name__.replace("_", " ").capitalize()

    @property
    def paragraph(self) -> str:
        """What happens, why Jepsen does not see it, and what is promised here."""
        return getdoc(self.tell) or ""

    def build(self, folder: Path, promise: Promise) -> Path:
        """Its run folder, under one promise."""
        h = HistoryBuilder(folder, promises=[serialization.encode(promise)], name=self.title, **self.options)
        self.tell(h)
        return h.seal()


DEMONSTRATIONS: list[Demonstration] = []


def demonstration(
    broken: Mapping[Promise, Collection[str]] | None = None,
    kept: Collection[Promise] = (),
    unknown: Collection[Promise] = (),
    **options: Any,
) -> Callable[[Tell], Tell]:
    """``broken``: promises with the kinds that break them; ``options``: of the builder."""
    verdicts = {promise: (Validity.INVALID, frozenset(kinds)) for promise, kinds in (broken or {}).items()}
    verdicts |= {promise: (Validity.VALID, frozenset()) for promise in kept}
    verdicts |= {promise: (Validity.UNKNOWN, frozenset()) for promise in unknown}

    def add(tell: Tell) -> Tell:
        DEMONSTRATIONS.append(Demonstration(tell, verdicts, options))
        return tell

    return add


def shown(verdict: Verdict) -> tuple[Validity, frozenset[str]]:
    """How a run ended, and which kinds broke its promises."""
    findings = (f for check in verdict.checks for f in check.findings)
    return verdict.validity, frozenset(f.kind for f in findings if f.severity == Severity.VIOLATION)


def two(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """Ten records, of which the first of two members processed 0 to 5 and committed 4."""
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(4, 3)
    return a, b


@demonstration(broken={Delivery("at-least-once"): {"unseen"}}, kept=[Delivery("at-most-once")])
def a_successor_resumes_past_unprocessed_records(h: HistoryBuilder) -> None:
    """A member commits what it polled, not what it processed, and is killed with six records in hand. Its successor
    starts at the committed offset: nobody ever processes these six.

    To Jepsen a record that any poll returned has been seen, and were it otherwise, the last reads, which begin at the
    start of every partition, would "see" it. Redpanda's auto-commit workload does compare commits with polls, of one
    consumer that nothing happens to.

    At-least-once is broken. At-most-once permits it: they were in hand when their owner died.
    """
    a, b = two(h)
    h.write(4)
    rows = a.poll(range(6, 12), 3.5)
    a.commit(12, 3.6)
    rows[0].begin(3.7)
    a.die(4)
    a.evicted(9)
    b.assigned(10)
    b.process(range(12, 14), 11)
    b.commit(14, 12)
    b.close(39)


@demonstration(broken={Ownership(of="processing"): {"work-after-reassignment"}}, kept=[Ownership(of="assignment")])
def a_zombie_works_through_its_backlog(h: HistoryBuilder) -> None:
    """A member is frozen for longer than its session, with records of one poll in hand. The partition goes to another
    one; the first wakes, and goes on with its backlog beside the new owner until its next poll tells it.

    Jepsen's operation is over when the poll returns: that its records are worked on later, and by whom, is in no
    history. Who owns what is recorded only to excuse a jump inside a transaction in which partitions moved.

    A promise that one member at a time processes a partition is broken (it needs a fence of the program's own); one of
    assignment is kept, for the zombie could not know.
    """
    a, b = two(h)
    rows = a.poll(range(6, 10), 3.5)
    a.pause(4, 12, expect="fenced")
    a.evicted(9)
    b.assigned(10)
    b.process(range(4, 10), 11)
    b.commit(10, 11.5)
    for n, row in enumerate(rows):
        row.begin(12.001 + n / 1000).end(12.0015 + n / 1000)
    a.lost(12.1)
    a.close(38)
    b.close(39)


@demonstration(broken={Commits(): {"zombie-commit", "commit-regression"}}, kept=[Delivery("at-least-once")])
def a_late_commit_of_a_zombie_takes_the_group_back(h: HistoryBuilder) -> None:
    """A member that had lost its partition while it was frozen commits what it last finished, and the coordinator takes
    it although the new owner has committed more: the group's position goes back. The next owner starts there, and
    processes four records that were long done.

    No operation of Jepsen's queue workload reads a committed offset. What it could see is a poll that goes back, and
    that is allowed with ``subscribe``.

    The promise of commits is broken twice: by who wrote it, and by where it went. At-least-once alone is kept, for
    nothing is lost by it.
    """
    a, b = two(h)
    c = h.member(2)
    a.pause(3.5, 12, expect="fenced")
    a.evicted(9)
    b.assigned(10)
    b.process(range(4, 10), 11)
    b.commit(10, 11.5)
    a.commit(6, 12.02)
    a.lost(12.1)
    b.revoked(13)
    c.assigned(14)
    c.fetches(6, 14.01)
    c.process(range(6, 10), 15)
    c.commit(10, 16)
    for end, member in enumerate((a, b, c)):
        member.close(37 + end)


@demonstration(
    broken={Delivery("at-least-once", duplicates="only-after-failure"): {"avoidable-redelivery"}},
    kept=[Delivery("at-least-once")],
)
def records_are_processed_twice_though_nothing_failed(h: HistoryBuilder) -> None:
    """A member is asked to give its partition up, does so at leisure, and does not commit what it has finished. Its
    successor does that again. There is no fault far and wide: every scale-up of this group costs duplicates.

    Jepsen's ``duplicate`` is one value at two offsets of the log. How often each process consumed a value is written to
    a file and not judged, for duplicates are what at-least-once may bring.

    They may come, but not from nothing: the promise of duplicates only after a failure is broken. Any duplicates
    permitted, all is well.
    """
    a, b = two(h)
    a.revoked(4)
    b.assigned(5)
    b.process(range(4, 10), 6)
    b.commit(10, 7)
    a.close(38)
    b.close(39)


@demonstration(broken={Delivery("at-least-once"): {"redelivery-loop"}}, kept=[Progress(within_s=30)])
def a_record_comes_again_and_again_until_it_is_too_late_to_see(h: HistoryBuilder) -> None:
    """One record takes longer than the group gives anybody: twelve times it is delivered, begun, and taken away before
    it is done. When the test calms down, the thirteenth owner gets through.

    Each of these polls is a success to Jepsen, the record has been seen, and by the last reads the loop is over. An
    application that pays a bill in that handler has paid it thirteen times.

    At-least-once is broken here by a loop that no fault explains. Progress is kept: in the end everything was consumed.
    """
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(3.9)
    for n in range(13):
        owner, at = (b, a)[n % 2], 4 + n
        owner.assigned(at)
        (row,) = owner.poll([6], at + 0.1)
        row.begin(at + 0.1)
        if n < 12:
            owner.revoked(at + 0.8)
    row.end(16.5)
    owner.process(range(7, 10), 17)
    owner.commit(10, 17.5)
    a.close(38)
    b.close(39)


@demonstration(
    broken={Progress(within_s=30): {"stuck-partition", "unconsumed"}}, kept=[Delivery("at-least-once")], partitions=2
)
def a_partition_is_assigned_and_never_delivered(h: HistoryBuilder) -> None:
    """Of two partitions each has its owner, but one owner never gets a record: its position was never initialised, its
    fetch is lost, nobody notices. The group is stable, everybody sends heartbeats, the lag grows.

    Jepsen's generator heals that: it keeps assigning and subscribing clients to what was sent and not yet polled, and
    the last reads do not use the group at all. The delay shows in ``worst-realtime-lag``, which is told and not judged.

    Progress is broken: the partition has an owner, an end that lies ahead, and no delivery in 40 s. At-least-once is
    kept: nothing was committed that was not done.
    """
    h.phases["drain"] = (20.1, 60.0)
    a, b = h.member(0), h.member(1)
    h.write(10, 0)
    h.write(10, 1)
    a.assigned(1, 0)
    b.assigned(1, 1)
    a.process(range(10), 2)
    a.commit(10, 3)
    a.close(61)
    b.close(61)


@demonstration(
    broken={Progress(within_s=30): {"stuck-partition"}}, kept=[Progress(within_s=90)], partitions=3, classic=True
)
def one_member_holds_the_barrier_for_a_minute(h: HistoryBuilder) -> None:
    """Somebody joins an eager group: two members give everything up and join again at once, the third is in its handler
    for another minute. The coordinator waits for it, and so does everybody: not one record in 60 s.

    To Jepsen the polls of that minute are successful and empty. Rebalances are no operations of it: which partitions
    moved is noted with the poll in which that happened, and excuses it; how long it took is not asked.

    Progress within 30 s is broken in all three partitions: two without an owner, one whose owner does not poll. Within
    90 s it is kept. (That the round took a minute is among the verdict's rebalances. There is no promise about the
    length of one yet, which would also name for whom it waited.)
    """
    h.phases["drain"] = (20.1, 100.0)
    members = [h.member(n) for n in range(3)]
    for tp in range(3):
        h.write(4, tp)
    h.round(1, *((member, [tp]) for tp, member in enumerate(members)), generation=1)
    for tp, member in enumerate(members):
        member.assigned(1.01, tp, reported=False)
        member.process(range(3), 2, tp)
        member.commit(3, 3, tp)
    another = h.member(3, at=20.5)
    h.join(another, 21)
    for tp, (member, at) in enumerate(zip(members, (21.1, 21.2, 81.0), strict=True)):
        member.revoked(at - 0.05, tp, reported=False)
        h.join(member, at)
    h.round(81.1, (another, []), *((member, [tp]) for tp, member in enumerate(members)), generation=2)
    for tp, member in enumerate(members):
        member.assigned(81.2, tp, reported=False, generation=2)
        member.process([3], 82, tp)
        member.commit(4, 83, tp, generation=2)
    for member in (*members, another):
        member.close(101)


@demonstration(broken={Commits(): {"work-after-fencing"}}, kept=[Delivery("at-least-once")])
def a_fenced_commit_is_ignored(h: HistoryBuilder) -> None:
    """The coordinator has removed a member, and refuses its commit with UNKNOWN_MEMBER_ID. The program catches the
    error, logs it, and goes on processing a partition that will be another's, until the client finds out by itself.

    Jepsen's client catches what the commit after a poll throws, and the poll stays a success: rightly, for its records
    were read. Whether anybody reads on after that is not asked.

    The promise of commits is broken: a fence is no advice. At-least-once is kept, for the new owner does it all again.
    """
    a, b = two(h)
    a.evicted(3.9)
    a.commit(6, 4, outcome="fail", error="UNKNOWN_MEMBER_ID")
    a.process([6, 7], 8)
    a.process([8, 9], 9)
    a.lost(9.5)
    b.assigned(10)
    b.process(range(4, 10), 11)
    b.commit(10, 12)
    a.close(38)
    b.close(39)


@demonstration(
    broken={Delivery("at-least-once"): {"phantom"}, Delivery("at-most-once"): {"phantom"}}, kept=[Order(by="key")]
)
def a_value_that_nobody_wrote(h: HistoryBuilder) -> None:
    """A member is given a record that no producer ever sent and the log does not hold: another topic's, another
    cluster's, or garbage.

    Jepsen looks for the writer of every value that was polled, for its graph of dependencies, and throws an error when
    there is none: the checker has crashed, and the verdict of a crash is "unknown".

    Here it is a finding as any other, and no promise of delivery permits it. A promise of order has no opinion: the
    verdict mentions it as seen, and promised by nobody.
    """
    a, _ = two(h)
    a.process(range(6, 10), 6)
    a.rows[7].seq = 999
    a.commit(10, 7)
    a.close(39)


@demonstration(unknown=[Delivery("at-least-once"), Order(by="key"), Ownership(of="assignment"), Progress(within_s=30)])
def a_fault_that_never_happened(h: HistoryBuilder) -> None:
    """The plan cuts a member off from its brokers for three seconds. The command that should do so returns, and cuts
    nothing: bytes go on flowing. The group is flawless, as groups are to which nothing happens.

    Operations of Jepsen's nemesis are in the history, but what comes back is what the nemesis says of itself, and the
    analysis is made of the operations of clients: a test whose faults all fail is a valid one.

    A fault counts here when something was seen that cannot be there without it. Without a witness no promise was put to
    the test, and whatever it is, the verdict is unknown.
    """
    a, _ = two(h)
    h.fault("black_hole", 4, 7, members=(a.name,), proven=False)
    a.process(range(6, 10), 6)
    a.commit(10, 7)
    a.close(39)


def write(folder: Path) -> Iterator[tuple[Demonstration, Promise, Path, Verdict]]:
    """Write the run folder of each demonstration under each of its promises into ``folder``, judged, with report."""
    for number, demo in enumerate(DEMONSTRATIONS, 1):
        for promise in demo.verdicts:
            built = demo.build(folder / f"{number:02}-{demo.tell.__name__}", promise)
            verdict = judge(built, find_here)
            RunFolder.open(built).write_verdict(verdict)
            judging.render(built)
            yield demo, promise, built, verdict


def page(folder: Path, written: Collection[tuple[Demonstration, Promise, Path, Verdict]]) -> Path:
    """``index.html``: each demonstration with its paragraph, and how each promise judges it, with a link."""
    parts = ["<!doctype html><meta charset=utf-8><title>Ten histories</title>", f"<style>{STYLE}</style>"]
    parts += [_paragraphs((__doc__ or "").partition("::")[0], "h1")]
    for number, demo in enumerate(DEMONSTRATIONS, 1):
        parts.append(_paragraphs(f"{number}. {demo.title}\n\n{demo.paragraph}", "h2"))
        rows = [(promise, run, verdict) for of, promise, run, verdict in written if of is demo]
        for promise, run, verdict in rows:
            kinds = ", ".join(sorted(shown(verdict)[1]))
            link = f"<a href='{os.path.relpath(run / 'report.html', folder)}'>{html.escape(str(promise))}</a>"
            parts.append(
                f"<p class={verdict.validity}><b>{verdict.validity}</b> under {link}: {kinds or 'no violation'}"
            )
    path = folder / "index.html"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


STYLE = "body{font:1rem/1.5 sans-serif;max-width:50rem;margin:2rem auto} .invalid b{color:#b00} .valid b{color:#070}"


def _paragraphs(text: str, heading: str) -> str:
    reported = re.sub("``(.*?)``", r"<code>\1</code>", html.escape(text.strip()))
    first, *rest = reported.split("\n\n")
    return f"<{heading}>{first}</{heading}>" + "".join(f"<p>{part}" for part in rest)


def main(folder: Path) -> None:
    """Write all anew, and say where to look."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(page(folder, list(write(folder))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
