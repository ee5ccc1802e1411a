"""What members of every client promise, as questions about the history of a run; each answers with its complaints.

They know nothing of clients, but for what one of them cannot tell (``TELLS``), and use none of the checkers, so that
these are not asked about themselves. The run is one in which ``member-1`` is paused past its session, after it
committed, and another member is asked to end and comes back.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from fencepost.evidence.brokers.kafka_protocol import ERROR_NAMES
from fencepost_member.kafka_errors import TABLE

Row = dict[str, Any]
Tp = tuple[str, int]
MS = 1_000_000
BLUR_NS = 10 * MS  # lines and records of brokers tell whole milliseconds, each by its own look at the clock
END_NS = 15_000 * MS  # who is asked to end does so within
TOLD_NS = 10_000 * MS  # who was given a partition for so long is told of it
NEVER = 1 << 62
LEAVES = ("CONSUMER_GROUP_HEARTBEAT", -1)  # by the consumer protocol
# Who has no callback for what is lost tells it as revoked.
TELLS = {"aiokafka": "revoked", "verifiable-consumer": "revoked"}
EXIT_CODES = {"verifiable-consumer": 143}  # a JVM that handles SIGTERM ends so
UNNAMED = {"verifiable-consumer": "LOCAL_UNNAMED"}  # it tells the words of an error, and not its name


class Held(NamedTuple):
    """A partition as a member's callbacks tell it: from the assigned one to the one (or the end) that took it away."""

    actor: str
    tp: Tp
    number: int
    begin_ns: int
    end_ns: int  # of the assigned callback
    until_ns: int  # the start of what took it
    gone_ns: int  # the end of that
    how: str


@dataclass(frozen=True)
class History:
    """What there is of a run. Rows have the columns of ``fencepost.history``, or the fields of the evidence."""

    client: str
    version: str
    protocol: str
    assignor: str  # empty: the brokers assign
    events: list[Row]
    delivered: list[Row]  # with actor and (topic, partition) besides
    log: list[Row]
    records: list[Row]  # the coordinator's
    requests: list[Row]

    @classmethod
    def of(cls, run: Path, client: str = "", version: str = "", protocol: str = "", assignor: str = "") -> History:
        """That of a sealed run; what members should say of themselves matters to whoever asks for that."""
        history = run / "history"
        entries = json.loads((history / "partitions.json").read_text())["partitions"]
        tps = {entry["tp"]: (entry["topic"], entry["partition"]) for entry in entries}
        events = [row | {"detail": json.loads(row["detail"])} for row in _rows(history / "events.parquet")]
        files = sorted((history / "delivered").glob("*.parquet"))
        delivered = [row | {"actor": file.stem, "tp": tps[row["tp"]]} for file in files for row in _rows(file)]
        log = [row | {"tp": tps[row["tp"]]} for row in _rows(history / "log" / "audit.parquet")]
        reported = [_lines(history / "coordinator" / f"{name}.jsonl") for name in ("offsets", "requests")]
        return cls(client, version, protocol, assignor, events, delivered, log, *reported)

    def kinds(self, *kinds: str) -> list[Row]:
        """The events of members of these kinds, in the order of their starts."""
        return sorted((e for e in self.events if e["kind"] in kinds), key=lambda e: int(e["begin_ns"]))

    def faults(self, fault: str) -> list[Row]:
        """Those events that tell of this one."""
        return [event for event in self.kinds("fault") if event["detail"]["fault"] == fault]

    @cached_property
    def held(self) -> list[Held]:
        """All that members were assigned, in the order of time."""
        found, open_ = list[Held](), dict[tuple[str, Tp], tuple[int, int, int]]()
        for event in self.kinds("assigned", "revoked", "lost", "closed", "ended"):
            actor, kind, tp = event["actor"], event["kind"], (event["topic"], event["partition"])
            if kind == "assigned" and event["topic"]:
                number = event["detail"]["intervals"]["{}-{}".format(*tp)]
                open_[actor, tp] = (number, event["begin_ns"], event["end_ns"])
            elif kind != "assigned":
                ends = [tp] if event["topic"] else [had for who, had in open_ if who == actor]
                for had in ends if event["topic"] or kind in ("closed", "ended") else ():
                    if begun := open_.pop((actor, had), None):
                        found.append(Held(actor, had, *begun, event["begin_ns"], event["end_ns"], kind))
        found += [Held(actor, tp, *begun, NEVER, NEVER, "") for (actor, tp), begun in open_.items()]
        return sorted(found, key=lambda held: held.begin_ns)

    @cached_property
    def by_interval(self) -> dict[tuple[str, Tp, int], list[Row]]:
        """What each assignment brought, in the order of deliveries."""
        found = defaultdict(list)
        for row in sorted(self.delivered, key=lambda row: int(row["ord"])):
            found[row["actor"], row["tp"], row["interval"]].append(row)
        return found

    @cached_property
    def committed(self) -> dict[Tp, list[tuple[int, int]]]:
        """By partition what the coordinator has of commits, (at_ns, offset), in the order of its log."""
        found = defaultdict(list)
        for record in self.records:
            if record["type"] == "commit":
                found[record["topic"], record["partition"]].append((record["at_ns"], record.get("committed", -1)))
        return found

    @cached_property
    def given(self) -> list[tuple[int, dict[str, tuple[str, set[Tp]]]]]:
        """What the coordinator had recorded at each time: member id -> (the life's name, its partitions)."""
        names, now, found = dict[str, str](), dict[str, tuple[str, set[Tp]]](), []
        for record in self.records:
            kind, gone = record["type"], record["deleted"]
            if kind == "classic-group":
                members = [] if gone else record["members"]
                now = {m["member_id"]: (m["client_id"], _tps(m["assignment"])) for m in members}
            elif kind == "member" and not gone:
                names[record["member_id"]] = record["client_id"]
                now = {record["member_id"]: (record["client_id"], set()), **now}
            elif kind == "current" and not gone:
                has = _tps(record["assigned"]) | _tps(record["pending_revocation"])
                now = {**now, record["member_id"]: (names[record["member_id"]], has)}
            elif kind in ("member", "current"):
                now = {member: one for member, one in now.items() if member != record["member_id"]}
            else:
                continue
            found.append((record["at_ns"], now))
        return found

    def put_out_ns(self, pause: Row) -> tuple[str, int]:
        """The member id of who is paused, and when the coordinator first had no such member."""
        actor, since = pause["detail"]["members"][0], bisect_right([at for at, _ in self.given], pause["begin_ns"])
        ids = {member for _, now in self.given[:since][-1:] for member, (name, _) in now.items() if name == actor}
        member = next(iter(ids), "")
        return member, next((at for at, now in self.given[since:] if member not in now), NEVER)

    def in_force(self, tp: Tp, since_ns: int, until_ns: int) -> set[int]:
        """The committed offsets that somebody may have been told in that time."""
        before = [0, *(offset for at, offset in self.committed[tp] if at <= since_ns)][-1]
        return {before} | {offset for at, offset in self.committed[tp] if since_ns - BLUR_NS <= at <= until_ns}


def says_who_it_is(history: History) -> Iterator[str]:
    started = {event["actor"]: event["detail"] for event in history.kinds("started")}
    for actor in (e["actor"] for e in history.kinds("launched") if e["actor"].startswith("member")):
        said = started.get(actor, {"client": "", "client_version": "", "protocol": ""})
        if (said["client"], said["protocol"]) != (history.client, history.protocol):
            yield f"{actor} is {said['client'] or 'nobody'} by the protocol {said['protocol']}"
        elif not said["client_version"].startswith(history.version):
            yield f"{actor} is of the release {said['client_version']}"


def agrees_on_the_assignor_that_it_is_told(history: History) -> Iterator[str]:
    rounds = [r for r in history.records if r["type"] == "classic-group" and not r["deleted"] and r["members"]]
    agreed = {record["protocol"] for record in rounds}
    if agreed != {history.assignor} - {""}:
        yield f"the group agrees on {sorted(agreed)}, where {history.assignor or 'the brokers'} should assign"


def is_assigned_before_it_is_given_records(history: History) -> Iterator[str]:
    begins = {(held.actor, held.tp, held.number): held.begin_ns for held in history.held}
    for who, rows in history.by_interval.items():
        if min(row["delivered_ns"] for row in rows) < begins.get(who, NEVER):
            yield f"{who} is given a record that it is not assigned"


def is_given_what_was_written(history: History) -> Iterator[str]:
    written = {(row["tp"], row["offset"]): (row["key"], row["writer"], row["seq"]) for row in history.log}
    for row in history.delivered:
        if written.get((row["tp"], row["offset"])) != (row["key"], row["writer"], row["seq"]):
            yield f"{row['actor']} is given at {row['tp']}, {row['offset']}, what is not there"
    if not history.delivered:
        yield "nobody is given anything"


def is_given_each_record_in_its_order(history: History) -> Iterator[str]:
    for (actor, tp, _), rows in history.by_interval.items():
        offsets, log = [row["offset"] for row in rows], [row["offset"] for row in history.log if row["tp"] == tp]
        if offsets != [offset for offset in sorted(log) if offsets[0] <= offset <= offsets[-1]]:
            yield f"{actor} is given records of {tp} out of order, twice, or not all"


def tells_the_commits_that_the_coordinator_has(history: History) -> Iterator[str]:
    commits = history.kinds("commit")
    for event in (e for e in commits if e["outcome"] == "ok"):
        within = (event["begin_ns"] - BLUR_NS, event["end_ns"] + BLUR_NS)
        tp = (event["topic"], event["partition"])
        if not any(offset == event["offset"] and within[0] <= at <= within[1] for at, offset in history.committed[tp]):
            yield f"{event['actor']} tells a commit of {tp}, {event['offset']}, and the coordinator has none"
    reported = {((e["topic"], e["partition"]), e["offset"]) for e in commits if e["outcome"] != "fail"}
    for tp, offset in ((tp, offset) for tp, all_ in history.committed.items() for _, offset in all_):
        if (tp, offset) not in reported:
            yield f"the coordinator has a commit of {tp}, {offset}, that nobody tells"
    if not any(history.committed.values()):
        yield "nobody commits anything"


def commits_no_more_than_it_has_done(history: History) -> Iterator[str]:
    """Nor what another one has done."""
    done = defaultdict(list)
    for row in history.delivered:
        done[row["actor"], row["tp"]].append((row["done_ns"] or NEVER, row["offset"]))
    for event in history.kinds("commit"):
        tp = (event["topic"], event["partition"])
        had = max((offset for at, offset in done[event["actor"], tp] if at <= event["begin_ns"]), default=-1)
        if event["offset"] > had + 1:
            yield f"{event['actor']} commits {tp}, {event['offset']}, and has done no more than {had}"


def never_commits_less_than_there_is(history: History) -> Iterator[str]:
    for tp, commits in history.committed.items():
        offsets = [offset for _, offset in commits]
        if offsets != sorted(offsets):
            yield f"the committed offset of {tp} goes back"


def begins_where_the_last_one_committed(history: History) -> Iterator[str]:
    begun = {(held.actor, held.tp, held.number): held.begin_ns for held in history.held}
    for (actor, tp, number), rows in history.by_interval.items():
        first = rows[0]
        expected = history.in_force(tp, begun.get((actor, tp, number), 0), first["delivered_ns"])
        if first["offset"] not in expected:
            yield f"{actor} begins at {tp}, {first['offset']}, where {sorted(expected)} was committed"


def tells_what_a_pause_past_its_session_took(history: History) -> Iterator[str]:
    if not history.faults("pause"):
        yield "nobody was paused"
    for pause in history.faults("pause"):
        actor, how = pause["detail"]["members"][0], TELLS.get(history.client, "lost")
        had = [h for h in history.held if h.actor == actor and h.begin_ns < pause["begin_ns"] < h.until_ns]
        if not had:
            yield f"{actor} had nothing that a pause could take"
        for held in had:
            if held.how != how:
                yield f"{actor} tells {held.tp}, which it lost, as {held.how or 'nothing'}"


def commits_nothing_once_it_was_put_out(history: History) -> Iterator[str]:
    for pause in history.faults("pause"):
        member, out_ns = history.put_out_ns(pause)
        if out_ns == NEVER:
            yield f"{pause['detail']['members'][0]} was never put out of the group"
        mine = [r for r in history.requests if r["api"] == "OFFSET_COMMIT" and r["member_id"] == member]
        generation = max((r["generation"] for r in mine if r["start_ns"] < pause["begin_ns"]), default=-1)
        for late in (r for r in mine if r["generation"] <= generation and r["start_ns"] > out_ns + BLUR_NS):
            if not all(error for *_, error in late["offsets"]):
                yield f"{late['client_id']}, which was put out, commits {late['offsets']}"


def gives_up_before_another_one_is_assigned(history: History) -> Iterator[str]:
    out = {pause["detail"]["members"][0]: pause["begin_ns"] for pause in history.faults("pause")}
    before = dict[Tp, Held]()
    for held in history.held:
        last, before[held.tp] = before.get(held.tp), held
        if not last or last.how in ("closed", "ended") or last.begin_ns < out.get(last.actor, 0) < last.gone_ns:
            continue
        if last.actor != held.actor and held.begin_ns < last.gone_ns - BLUR_NS:
            yield f"{held.actor} is assigned {held.tp} before {last.actor} gave it up"


def has_committed_what_is_done_when_it_gives_up(history: History) -> Iterator[str]:
    """When it was not put out, nor refused: whoever comes next begins behind that."""
    outs = [history.put_out_ns(pause)[1] for pause in history.faults("pause")]
    refused = {(e["actor"], e["topic"], e["partition"], e["offset"]) for e in history.kinds("commit") if e["error"]}
    for held in history.held:
        if held.how not in ("revoked", "closed") or any(held.begin_ns < out < held.gone_ns for out in outs):
            continue
        done = [r["offset"] for r in history.by_interval.get(held[:3], ()) if 0 < r["done_ns"] <= held.gone_ns]
        if not done or (held.actor, *held.tp, max(done) + 1) in refused:
            continue
        if max(history.in_force(held.tp, held.until_ns, held.gone_ns + BLUR_NS)) <= max(done):
            yield f"{held.actor} gives {held.tp} up, and has not committed {max(done)}, which is done"


def leaves_the_group_when_it_ends(history: History) -> Iterator[str]:
    joined = {name for _, now in history.given for name, _ in now.values()}
    for actor in joined & {closed["actor"] for closed in history.kinds("closed")}:
        mine = [r for r in history.requests if r["client_id"] == actor and not r["error"]]
        if not any(r["api"] == "LEAVE_GROUP" or (r["api"], r["generation"]) == LEAVES for r in mine):
            yield f"{actor} ends, and does not leave its group"
    if not joined or history.given[-1][1]:
        yield f"there are members still: {history.given[-1:]}"


def ends_soon_when_it_is_asked_to(history: History) -> Iterator[str]:
    asked = {actor: e["begin_ns"] for e in history.faults("bounce") for actor in e["detail"]["members"]}
    for ended in (e for e in history.kinds("ended") if e["actor"].startswith("member")):
        actor, code = ended["actor"], ended["detail"]["exit_code"]
        if (ended["detail"]["how"], code) != ("closed", EXIT_CODES.get(history.client, 0)):
            yield f"{actor} ends with exit code {code}, {ended['detail']['how']}"
        if ended["begin_ns"] - asked.pop(actor, ended["begin_ns"]) > END_NS:
            yield f"{actor} takes longer than {END_NS / MS:.0f} ms to end"
    if asked or not history.faults("bounce"):
        yield f"nobody was asked to end, or did not: {sorted(asked)}"


def names_errors_as_kafka_does(history: History) -> Iterator[str]:
    for event in history.events:
        if event["error"] and event["error"] not in {*TABLE, *ERROR_NAMES.values(), UNNAMED.get(history.client)}:
            yield f"{event['actor']} tells an error {event['error']}"


def is_assigned_what_the_coordinator_gives(history: History) -> Iterator[str]:
    ends = [*(at for at, _ in history.given[1:]), NEVER]
    given = [(at, until, now) for (at, now), until in zip(history.given, ends, strict=True)]
    for held in history.held:
        soon = (held.begin_ns - TOLD_NS, held.end_ns + BLUR_NS)
        had = [one for at, until, now in given if at <= soon[1] and soon[0] <= until for one in now.values()]
        if not any(name == held.actor and held.tp in tps for name, tps in had):
            yield f"{held.actor} is assigned {held.tp}, which the coordinator did not give it"
    away = [(e["detail"]["members"][0], e["begin_ns"]) for e in history.faults("pause")]
    for at, until, now in given:
        for name, tps in now.values() if until - at > TOLD_NS else ():
            reported = {held.tp for held in history.held if held.actor == name and held.begin_ns < until}
            if not any(name == who and at < since < until for who, since in away) and not tps <= reported:
                yield f"{name} is given {sorted(tps - reported)}, and is not told"


QUESTIONS: tuple[Callable[[History], Iterator[str]], ...] = (
    says_who_it_is,
    agrees_on_the_assignor_that_it_is_told,
    is_assigned_before_it_is_given_records,
    is_given_what_was_written,
    is_given_each_record_in_its_order,
    tells_the_commits_that_the_coordinator_has,
    commits_no_more_than_it_has_done,
    never_commits_less_than_there_is,
    begins_where_the_last_one_committed,
    tells_what_a_pause_past_its_session_took,
    commits_nothing_once_it_was_put_out,
    gives_up_before_another_one_is_assigned,
    has_committed_what_is_done_when_it_gives_up,
    leaves_the_group_when_it_ends,
    ends_soon_when_it_is_asked_to,
    names_errors_as_kafka_does,
    is_assigned_what_the_coordinator_gives,
)


def complaints(history: History) -> dict[str, str]:
    """By the name of each question that is answered wrongly, the first complaint."""
    found = {question.__name__: next(question(history), "") for question in QUESTIONS}
    return {name: complaint for name, complaint in found.items() if complaint}


def _rows(file: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(file).to_pylist()
    return rows


def _lines(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _tps(assignment: dict[str, list[int]] | None) -> set[Tp]:
    return {(topic, partition) for topic, partitions in (assignment or {}).items() for partition in partitions}
