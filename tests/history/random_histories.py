"""Random lives of a group, as run folders: joins, hand-overs, deaths, zombies, retries, moves of the
coordinator, faulty commits and uncertain clocks, drawn from a seed.

``tame`` histories are what correct members do under faults: nothing in them breaks at-least-once, order by key,
ownership by assignment or progress. ``wild`` ones have anomalies of every kind planted into such lives, for finders to
agree on. ::

    run = tame(tmp_path, seed=7)
    run = wild(tmp_path, seed=7)
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from fencepost.history import DELIVERED_VERSION, RecordState
from fencepost.model.clients import VERIFIABLE
from history.builder import HistoryBuilder, MemberTeller, Row

PROMISES = ("delivery", "order", "ownership", "progress", "commits")
SESSION_S = 3.0
VISIT_S = 1.0


def tame(folder: Path, seed: int, *, guest: bool = False) -> Path:
    """A run of correct members under random faults; ``guest``: and of one more, see ``_Group.visit``."""
    return _Group(folder, random.Random(f"tame/{seed}"), wild=0.0, guest=guest).live()


def wild(folder: Path, seed: int, *, guest: bool = False) -> Path:
    """A run with planted anomalies; ``guest``: and of one more correct member."""
    rng = random.Random(f"wild/{seed}")
    return _Group(folder, rng, wild=rng.choice((0.05, 0.15, 0.4)), guest=guest).live()


def silent(folder: Path, seed: int) -> Path:
    """The same of members that tell nothing."""
    rng = random.Random(f"silent/{seed}")
    return _Group(folder, rng, wild=rng.choice((0.05, 0.15, 0.4)), guest=False, black_box=True).live()


def recorded(folder: Path, seed: int) -> Path:
    """Of VerifiableConsumers, or of a program by the rule of effects: the judge is left to say what was processed."""
    rng = random.Random(f"recorded/{seed}")
    group = _Group(folder, rng, wild=rng.choice((0.05, 0.15, 0.4)), guest=False)
    group.h.delivered_version, group.h.client = DELIVERED_VERSION, {"client": VERIFIABLE}
    for record in group.h.log:
        if rng.random() < 0.8:
            group.h.affected(record.tp, record.offset)
    return group.live()


def programs(folder: Path, seed: int) -> Path:
    """Of a user's program, which was recorded by the rule of polls."""
    rng = random.Random(f"programs/{seed}")
    group = _Group(folder, rng, wild=rng.choice((0.05, 0.15, 0.4)), guest=False)
    group.h.delivered_version = DELIVERED_VERSION
    group.h.workload = {"type": "own_program", "processed": "next-poll"}
    return group.live()


class _Group:
    """Plays the life of a group, one action after the other; ``t`` is now."""

    def __init__(self, folder: Path, rng: random.Random, wild: float, guest: bool, black_box: bool = False) -> None:
        promises = [{"type": name} for name in PROMISES]
        self.rng, self.wild, self.guest = rng, wild, guest
        self.partitions = rng.randint(1, 3)
        options = {"promises": promises, "keys": rng.choice((1, 2, 5)), "classic": rng.random() < 0.5}
        config = {"heartbeat.interval.ms": 500}
        if rng.random() < 0.5:  # who may move its position
            options["workload"] = {"type": "own_program"}
        self.h = HistoryBuilder(folder, self.partitions, config=config, black_box=black_box, **options)
        self.h.protocol = rng.choice(("", "cooperative")) if wild else ""
        self.h.blur_ns = rng.choice((0, 500_000, 500_000, 20_000_000))
        self.t = 1.0
        self.crew: list[MemberTeller] = []
        self.owner: dict[int, MemberTeller] = {}
        self.position: dict[int, int] = defaultdict(int)
        self.reached: dict[int, int] = defaultdict(int)
        self.committed: dict[int, int] = defaultdict(int)
        self.free_at: dict[int, float] = {}
        self.asleep: list[tuple[float, MemberTeller, list[Row]]] = []
        self.steps = self.spawned = 0
        self.epoch = 1_000  # above all numbers of rounds that a classic group has without a rebalance of its own
        self.static = ("one", None) if wild and rng.random() < wild else (None,)  # ids that members may be given
        self.behind = int(rng.random() < wild / 2)  # 1: this group commits the last offset instead of the next
        sort = rng.choice(("", "next-poll", "effect")) if wild and not black_box else ""
        self.h.workload = {"type": "own_program", "processed": sort} if sort else {}
        for tp in range(self.partitions):
            for _ in range(rng.randint(1, 3)):
                hole = rng.choice((0, 0, 2))
                self.h.write(rng.randint(3, 15), tp, at=rng.uniform(0.1, 0.9), hole=hole, acked=rng.random() > 0.1)

    def live(self) -> Path:
        for _ in range(self.rng.randint(1, 3)):
            self.join()
        for _ in range(self.rng.randint(5, 40)):
            self.tick()
            self.rng.choices(
                (self.work, self.commit, self.hand_over, self.join, self.kill, self.freeze, self.leave, self.move),
                weights=(10, 5, 3, 1, 1, 1, 1, 1),
            )[0]()
            if self.rng.random() < self.wild:
                self.rng.choice(_PLANTS)(self)
        return self.finish()

    def tick(self) -> None:
        """Time goes on; who has slept enough wakes, and partitions without an owner get one."""
        self.t += self.rng.uniform(0.05, 1.0)
        for sleeper in [s for s in self.asleep if s[0] <= self.t]:
            self.wake(*sleeper)
        for tp in range(self.partitions):
            if tp not in self.owner and self.crew and self.free_at.get(tp, 0.0) <= self.t:
                self.give(tp, self.rng.choice(self.crew))

    def give(self, tp: int, member: MemberTeller) -> None:
        self.t += 0.05
        member.assigned(self.t, tp)
        self.owner[tp] = member
        self.position[tp] = self.reached[tp] = self.committed[tp]
        if self.wild and self.rng.random() < self.wild / 2:
            self.tell_what_was_before(tp, member)
        elif self.rng.random() < 0.7:
            member.fetches(self.committed[tp] or None, self.t + 0.002, tp)
        self.t += 0.01

    def tell_what_was_before(self, tp: int, member: MemberTeller) -> None:
        """The new owner begins below what was committed: its coordinator told it so, or nobody saw what it told."""
        reported = self.rng.randrange(self.committed[tp] + 1)
        self.position[tp] = self.reached[tp] = reported
        if self.rng.random() < 0.8:
            member.fetches(reported or None, self.t + 0.002, tp, stable=self.rng.random() < 0.5, broker=self.h.term)

    def log(self, tp: int) -> list[int]:
        """What there is to read for the owner."""
        return sorted(r.offset for r in self.h.log if r.tp == tp and r.offset >= self.position[tp])

    def end(self, tp: int) -> int:
        return max((r.offset + 1 for r in self.h.log if r.tp == tp), default=0)

    def some(self) -> int | None:
        """A partition that somebody owns."""
        return self.rng.choice(sorted(self.owner)) if self.owner else None

    def work(self) -> None:
        tp = self.some()
        offsets = self.log(tp)[: self.rng.randint(1, 6)] if tp is not None else []
        if tp is None or not offsets:
            return
        each = self.rng.choice((0.001, 0.02))
        self.owner[tp].process(offsets, self.t, tp, each=each)
        self.t += each * len(offsets) + 0.001
        self.position[tp] = self.reached[tp] = offsets[-1] + 1

    def commit(self) -> None:
        tp = self.some()
        if tp is not None and self.reached[tp] > self.committed[tp]:
            self.commit_of(tp)

    def commit_of(self, tp: int) -> None:
        """As a rule it works; or it is refused, or nobody hears the answer; or another try of it works."""
        self.try_to_commit(tp)
        if self.reached[tp] > self.committed[tp] and self.rng.random() < 0.5:
            self.try_to_commit(tp)

    def try_to_commit(self, tp: int) -> None:
        how = self.rng.choices(("ok", "fail", "info", "in doubt"), weights=(8, 1, 1, 1))[0]
        accepted = how in ("ok", "in doubt")
        outcome = None if how == "in doubt" else how
        error = {"fail": "REBALANCE_IN_PROGRESS", "info": "_TIMED_OUT"}.get(how, "")
        more = {"logged": self.rng.random() < 0.9, "mode": self.rng.choice(("sync", "sync", "async", "auto"))}
        if how == "in doubt":
            more["mode"] = "sync"  # the client itself tells only of answers
        offset = max(0, self.reached[tp] - self.behind)
        if more["mode"] == "async":  # of what is stored, to which more may have come since
            more["asked"] = self.rng.choice((-1, offset - 1, offset))
        self.owner[tp].commit(offset, self.t, tp, outcome=outcome, error=error, accepted=accepted, **more)
        if accepted:
            self.committed[tp] = offset
        self.t += 0.004

    def hand_over(self) -> None:
        """The owner commits, gives up cleanly, and somebody else (or it) gets the partition."""
        tp = self.some()
        if tp is None:
            return
        if self.reached[tp] > self.committed[tp] and self.rng.random() < 0.8:
            self.commit_of(tp)
        self.owner.pop(tp).revoked(self.t, tp)
        self.free_at[tp] = self.t + 0.02
        self.t += 0.02

    def join(self) -> None:
        if len(self.crew) < 4:
            static = self.rng.choice(self.static) if self.wild else None
            self.crew.append(self.h.member(self.spawned, instance_id=static, at=self.t))
            self.spawned += 1

    def leave(self) -> None:
        if len(self.crew) < 2:
            return
        member = self.crew.pop(self.rng.randrange(len(self.crew)))
        for tp in self.owned_by(member):
            if self.reached[tp] > self.committed[tp]:
                self.commit_of(tp)
            self.owner.pop(tp).revoked(self.t, tp)
            self.free_at[tp] = self.t + 0.1
            self.t += 0.02
        member.close(self.t)

    def move(self) -> None:
        """The coordinator moves to another broker, which knows what the former one wrote."""
        expect = "coordinator_moved" if self.owner else None  # else it writes nothing that shows it
        self.h.fault("move_coordinator", self.t, step=self.steps, brokers=(1,), expect=expect)
        self.steps += 1
        self.h.term += 1
        self.h.coordinates(self.h.term, self.t + 0.01)
        for tp, member in sorted(self.owner.items()):
            self.h.gives(member, tp, self.t + 0.05)
        self.t += 0.1

    def rebalance(self, by: int = 1, unreported: MemberTeller | None = None) -> None:
        """A round: everybody keeps what they have, but of one it goes to ``unreported``, who never hears of that."""
        self.epoch += by
        owner = {**self.owner, tp: unreported} if unreported and (tp := self.some()) is not None else self.owner
        has = [(member, [tp for tp in sorted(owner) if owner[tp] is member]) for member in self.crew]
        self.h.round(self.t, *has, generation=self.epoch)
        self.t += 0.01

    def owned_by(self, member: MemberTeller) -> list[int]:
        return [tp for tp, owner in sorted(self.owner.items()) if owner is member]

    def begin_batch(self, member: MemberTeller) -> list[Row]:
        """A poll of which the first records are done and the next one begun, as a rule; returns what is left."""
        tps = self.owned_by(member)
        offsets = self.log(tps[0])[: self.rng.randint(1, 6)] if tps else []
        if not offsets:
            return []
        rows = member.poll(offsets, self.t, tps[0])
        cut = self.rng.randrange(len(rows))
        for row in rows[:cut]:
            row.begin(self.t).end(self.t + 0.003)
            self.t += 0.004
        if self.rng.random() < 0.7:
            rows[cut].begin(self.t)
        self.t += 0.001
        return rows[cut:]

    def kill(self) -> None:
        if len(self.crew) < 2:
            return
        member = self.crew.pop(self.rng.randrange(len(self.crew)))
        self.begin_batch(member)
        self.h.fault("kill", self.t, step=self.steps, members=(member.name,))
        self.steps += 1
        member.die(self.t + 0.01)
        self.evict(member, self.t + SESSION_S)

    def evict(self, member: MemberTeller, at: float) -> None:
        member.evicted(at)
        for tp in self.owned_by(member):
            del self.owner[tp]
            self.free_at[tp] = at + 0.05

    def freeze(self) -> None:
        """Past its session: it is a zombie when it wakes."""
        if len(self.crew) < 2:
            return
        member = self.crew.pop(self.rng.randrange(len(self.crew)))
        until = self.t + SESSION_S + self.rng.uniform(0.5, 5.0)
        rows = self.begin_batch(member) if self.rng.random() < 0.7 else self.poll_on_waking(member, until)
        member.pause(self.t, until, step=self.steps)
        self.steps += 1
        self.asleep.append((until, member, rows))
        self.evict(member, self.t + SESSION_S)

    def poll_on_waking(self, member: MemberTeller, until: float) -> list[Row]:
        """It is frozen inside a poll, which returns what was fetched before."""
        tps = self.owned_by(member)
        return member.poll(self.log(tps[0])[: self.rng.randint(1, 6)], until + 0.004, tps[0]) if tps else []

    def wake(self, until: float, member: MemberTeller, rows: list[Row]) -> None:
        """It goes on with what it has in hand, and then hears that it lost its partitions."""
        self.asleep = [s for s in self.asleep if s[1] is not member]
        at = until + 0.005
        for row in rows:
            if not row.begin_ns:
                row.begin(at)
            row.end(at + 0.002)
            at += 0.003
        if rows and self.rng.random() < self.wild and rows[0].tp in self.owner:
            self.owner[rows[0].tp].process(self.log(rows[0].tp)[:3], until + 0.004, rows[0].tp, each=0.01)
        if rows and self.rng.random() < 0.5:
            error = {"outcome": "fail", "error": "UNKNOWN_MEMBER_ID"}
            member.commit(rows[-1].offset + 1, at, rows[-1].tp, **error)
            at += 0.003
        for tp in sorted(member.held):
            member.lost(at, tp)
        self.t = max(self.t, at + 0.01)
        if self.h.classic:
            member.member_id += "'"
        self.crew.append(member)

    def stand_still(self, member: MemberTeller) -> None:
        """For long, as a rule without a poll, but not always without work: records end late, or begin again."""
        begin, self.t = self.t, self.t + self.rng.uniform(20, 60)
        if self.rng.random() < 0.7:
            member.unpolled(begin, self.t)
        for _ in range(self.rng.randint(0, 4)):
            member.heartbeat(self.rng.uniform(begin, self.t))
        if self.rng.random() < 0.3:
            member.pause(*sorted(self.rng.uniform(begin, self.t) for _ in "ab"), step=self.steps)
            self.steps += 1
        for row in self.rng.sample(member.rows, min(self.rng.randint(0, 3), len(member.rows))):
            row.begin(self.rng.uniform(begin, self.t))
            if self.rng.random() < 0.7:
                row.end(self.rng.uniform(begin, self.t + 10))

    def never_rest(self) -> None:
        """One round follows another, as a rule for longer than progress is promised within."""
        until = self.t + self.rng.uniform(28, 45)
        while self.t < until:
            self.rebalance()
            self.t += self.rng.uniform(1, 5)

    def rest(self) -> None:
        """Nothing happens for a while, but that a member lives, which may not have what it was given."""
        one = self.rng.choice(self.crew)
        self.rebalance(unreported=one)
        self.t += self.rng.uniform(6, 12)
        for _ in range(self.rng.randint(1, 4)):
            one.heartbeat(self.t - self.rng.uniform(0, 5), generation=self.epoch - self.rng.choice((0, 0, 0, 1)))

    def finish(self) -> Path:
        """Everything is healed; the group consumes what is left, commits and ends."""
        while self.asleep:
            self.t = max(self.t, self.asleep[0][0] + 0.1)
            self.wake(*self.asleep[0])
        self.t = max([self.t, *self.free_at.values()]) + 1.0
        heal = self.t
        if not self.crew:
            self.join()
        self.tick()
        for tp in range(self.partitions):
            if tp not in self.owner or self.rng.random() < self.wild / 2:
                continue
            if self.rng.random() < self.wild / 2:
                self.stand_still(self.owner[tp])
            while offsets := self.log(tp):
                self.owner[tp].process(offsets[:9], self.t, tp)
                self.t += 0.02
                self.position[tp] = self.reached[tp] = offsets[:9][-1] + 1
            self.owner[tp].commit(max(0, self.reached[tp] - self.behind), self.t, tp)
            self.t += 0.01
        for late, chance in ((self.never_rest, self.wild), (self.rest, 0.5)) if self.wild else ():
            if self.rng.random() < chance:
                late()
        for member in self.crew:
            for tp in self.owned_by(member):
                member.revoked(self.t, tp)
                self.t += 0.01
            member.close(self.t)
        if self.guest:
            self.visit(self.t + 0.1)
        self.t += VISIT_S
        self.h.phases = {"warm-up": (0.0, 1.0), "heal": (heal, heal + 0.01), "drain": (heal + 0.01, self.t + 0.5)}
        return self.h.seal()

    def visit(self, at: float) -> None:
        """One more member joins, works through a partition that is made for it, commits and leaves."""
        tp = len(self.h.partitions)
        self.h.partitions.append(self.h.partitions[0]._replace(partition=tp))
        self.h.leader(1, at, tp)
        guest, offsets = self.h.member(self.spawned, at=at), self.h.write(5, tp, at=at)
        guest.assigned(at + 0.1, tp)
        guest.process(offsets, at + 0.2, tp)
        guest.commit(len(offsets), at + 0.3, tp)
        guest.revoked(at + 0.4, tp)
        guest.close(at + 0.5)


# What is planted. Each takes the group in any state and leaves it fit to go on.


def _lose(g: _Group) -> None:
    if g.h.log:
        lost = g.h.log[g.rng.randrange(len(g.h.log))]
        g.h.loses(lost.offset, lost.tp)


def _compact(g: _Group) -> None:
    """From now on the topic is one that is compacted: what a later record of its key has replaced may be gone."""
    g.h.keeps("compact", tombstones_s=g.rng.choice((0, 3600)))
    latest = {(r.tp, r.key): r.offset for r in sorted(g.h.log)}
    for r in [*g.h.log]:
        if latest[r.tp, r.key] > r.offset and g.rng.random() < 0.6:
            g.h.loses(r.offset, r.tp)


def _twice(g: _Group) -> None:
    tp = g.rng.randrange(g.partitions)
    if offsets := [r.offset for r in g.h.log if r.tp == tp]:
        g.h.lands_again(g.rng.choice(offsets), tp)


def _crossed(g: _Group) -> None:
    tp = g.rng.randrange(g.partitions)
    offsets = [r.offset for r in g.h.log if r.tp == tp]
    if len(offsets) > 1:
        g.h.land_crossed(*g.rng.sample(offsets, 2), tp)


def _alien(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        offset, seq = g.position[tp], g.rng.choice((0, 10**6))
        g.owner[tp].deliver(offset, g.t, tp, seq=seq, writer=g.rng.choice((0, 9))).begin(g.t).end(g.t + 0.001)


def _go_back(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.position[tp] = max(0, g.position[tp] - g.rng.randint(1, 6))
        if g.rng.random() < 0.5:
            g.owner[tp].seek(g.position[tp], g.t, tp)


def _go_elsewhere(g: _Group) -> None:
    """The program moves its position, here and there, and its client goes there, sooner or later, or not."""
    tp = g.some()
    if tp is not None:
        for _ in range(g.rng.randint(1, 3)):
            goal = max(0, g.position[tp] + g.rng.randint(-6, 4))
            g.owner[tp].seek(goal, g.t, tp)
            if g.rng.random() < 0.3 and (offsets := [o for o in g.log(tp) if o >= g.position[tp]][:2]):
                g.owner[tp].process(offsets, g.t + g.rng.choice((0, 0.002)), tp)
            g.t += g.rng.choice((0.003, 0.1))
        g.position[tp] = max(0, goal + g.rng.choice((0, 0, 0, 0, -1, 1)))
        g.reached[tp] = g.position[tp]


def _abort(g: _Group) -> None:
    """A transaction is not committed, and what it had read is read again, or from somewhere else on."""
    tp = g.some()
    if tp is not None:
        outcome = g.rng.choice(("fail", "info"))
        g.owner[tp].commit(g.position[tp], g.t, tp, outcome=outcome, error="UNKNOWN", mode="transaction")
        g.position[tp] = max(0, g.position[tp] - g.rng.randint(0, 6))
        g.owner[tp].seek(g.position[tp] + g.rng.choice((0, 0, 0, 1)), g.t + 0.003, tp)
        g.t += 0.01


def _skip(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.position[tp] += g.rng.randint(1, 4)


def _unseen(g: _Group) -> None:
    """An owner is given records where nobody records it; some may have an effect."""
    tp = g.some()
    if tp is not None and (offsets := g.log(tp)[:5]):
        for offset in offsets:
            if g.rng.random() < 0.5:
                g.owner[tp].effect(offset, g.t, seq=offset, tp=tp)
        g.position[tp] = g.reached[tp] = offsets[-1] + 1
        g.commit_of(tp)


def _backwards(g: _Group) -> None:
    tp = g.some()
    if tp is not None and (offsets := g.log(tp)[:5]):
        rows = g.owner[tp].poll(offsets, g.t, tp)
        for row in reversed(rows):
            row.begin(g.t).end(
                g.t + 0.001, g.rng.choice((RecordState.DONE, RecordState.DONE, RecordState.PARKED, RecordState.FAILED))
            )
            g.t += 0.002
        g.position[tp] = g.reached[tp] = offsets[-1] + 1


def _commit_ahead(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.reached[tp] += g.rng.choice((-2, 1, 3))
        if g.reached[tp] >= 0:
            g.commit_of(tp)
            g.position[tp] = max(g.position[tp], g.reached[tp])


def _commit_and_fall(g: _Group) -> None:
    """What a member does that commits before it processes, when it dies, or freezes and forgets."""
    tp = g.some()
    if tp is None or len(g.crew) < 2:
        return
    member = g.owner[tp]
    rows = g.begin_batch(member)
    if not rows:
        return
    tp = rows[0].tp
    g.reached[tp] = g.position[tp] = rows[-1].offset + 1
    g.commit_of(tp)
    g.crew.remove(member)
    if g.rng.random() < 0.5:
        member.die(g.t + 0.01, g.rng.choice(("killed", "crashed")))
    else:
        g.asleep.append((g.t + SESSION_S + 1, member, []))
    g.evict(member, g.t + SESSION_S)


def _second_owner(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        other = g.rng.choice(g.crew)
        g.t += 0.05
        other.assigned(g.t, tp, reported=g.rng.random() < 0.5)
        if g.rng.random() < 0.5:
            other.process(g.log(tp)[:3], g.t + 0.01, tp, each=0.02)
            g.owner[tp].process(g.log(tp)[:3], g.t + 0.02, tp, each=0.02)
            g.t += 0.1
        if g.rng.random() < 0.5:
            g.owner[tp] = other


def _stale(g: _Group) -> None:
    tp = g.some()
    if tp is not None and len(g.crew) > 1:
        old = g.owner[tp]
        rows = old.poll(g.log(tp)[:4], g.t, tp)
        g.t += 0.01
        if g.rng.random() < 0.5:
            g.hand_over()
        g.give(tp, g.rng.choice([m for m in g.crew if m is not old]))
        if g.rng.random() < 0.5:
            g.owner[tp].process([row.offset for row in rows], g.t, tp, each=g.rng.choice((0.0005, 0.004)))
        for row in rows:
            row.begin(g.t).end(g.t + 0.003)
            g.t += 0.004


def _start_below(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.owner[tp].revoked(g.t, tp)
        g.t += 0.05
        g.give(tp, g.rng.choice(g.crew))
        g.position[tp] = max(0, g.position[tp] - g.rng.randint(1, 5))
        g.work()


def _hole(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.owner[tp].miscounts(g.rng.choice((1, 3, -1)), tp)


def _loop(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        for _ in range(g.rng.choice((3, 12))):
            g.owner[tp].deliver(g.position[tp], g.t, tp)
            g.t += g.rng.choice((0.1, 20.0))


def _act(g: _Group) -> None:
    g.h.act(g.rng.choice(("delete-records", "reset-offsets")), g.t, g.rng.choice((None, 0)))


def _forget(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.h.accepts(g.rng.choice((None, 1)), g.t, tp)


def _unassigned(g: _Group) -> None:
    if g.crew:
        g.rng.choice(g.crew).deliver(0, g.t, 0, interval=-1).begin(g.t).end(g.t + 0.001)


def _half_done(g: _Group) -> None:
    tp = g.some()
    if tp is not None and (offsets := g.log(tp)[:3]):
        rows = g.owner[tp].poll(offsets, g.t, tp)
        rows[0].begin(g.t)
        g.position[tp] = g.reached[tp] = offsets[-1] + 1


def _leaderless(g: _Group) -> None:
    g.h.leader(g.rng.choice((-1, 1)), g.t, 0)


def _commit_back(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.owner[tp].commit(max(0, g.committed[tp] - g.rng.randint(1, 4)), g.t, tp)
        g.t += 0.004
        if g.rng.random() < 0.3:
            g.rng.choice(g.crew or [g.owner[tp]]).fetches(g.committed[tp], g.t, tp)
            g.t += 0.004


def _commit_beyond(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        g.owner[tp].commit(g.end(tp) + g.rng.choice((0, 1, 2, 100)), g.t, tp)
        g.t += 0.004


def _write_late(g: _Group) -> None:
    """Records that come after commits which may be above them."""
    tp = g.rng.randrange(g.partitions)
    g.h.write(g.rng.randint(1, 4), tp, at=g.t + g.rng.choice((-0.002, 0.0005, 0.1)))


def _foreign(g: _Group) -> None:
    tp = g.some()
    if tp is not None and g.crew:
        offset = g.rng.choice((g.reached[tp], g.committed[tp]))
        g.rng.choice(g.crew).commit(offset, g.t, tp, logged=g.rng.random() < 0.8)
        if g.rng.random() < 0.2:
            g.owner[tp].asks_to_commit(offset, g.t + 0.001, tp)
        g.t += 0.004


def _untrue(g: _Group) -> None:
    """The client says ok, the coordinator does not."""
    tp = g.some()
    if tp is not None:
        logged = g.rng.choice((True, False, "UNKNOWN_MEMBER_ID", "NOT_COORDINATOR"))
        mode, asked = g.rng.choice((("sync", None), ("auto", None), ("async", g.reached[tp])))
        g.owner[tp].commit(g.reached[tp], g.t, tp, accepted=False, logged=logged, mode=mode, asked=asked)
        g.t += 0.004


def _carry_on(g: _Group) -> None:
    tp = g.some()
    if tp is not None:
        error = g.rng.choice(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"))
        g.owner[tp].commit(g.reached[tp], g.t, tp, outcome="fail", error=error, generation=g.rng.randint(0, 9))
        for _ in range(g.rng.randint(1, 4)):
            g.t += g.rng.choice((0.1, 0.4, 0.6))
            if g.owner[tp].poll(offsets := g.log(tp)[:2], g.t, tp):
                for row in g.owner[tp].rows[-len(offsets) :]:
                    row.begin(g.t).end(g.t + 0.001)
                g.position[tp] = g.reached[tp] = offsets[-1] + 1


def _unguarded(g: _Group) -> None:
    g.h.producer(idempotent=g.rng.choice((False, "true")))


def _try_again(g: _Group) -> None:
    """A record fails, and the program goes back to it; as a rule in vain."""
    tp = g.some()
    if tp is not None and (offsets := g.log(tp)[:3]):
        for _ in range(g.rng.randint(1, 3)):
            g.owner[tp].seek(offsets[0], g.t, tp)
            rows = g.owner[tp].process(offsets, g.t + 0.002, tp)
            rows[0].end(g.t + 0.003, g.rng.choice((RecordState.FAILED, RecordState.FAILED, RecordState.DONE)))
            g.t += 0.1
        g.position[tp] = g.reached[tp] = offsets[-1] + 1


def _pause(g: _Group) -> None:
    """The program has its client fetch nothing of a partition for a while, or for ever."""
    tp = g.some()
    if tp is not None:
        until = g.rng.choice((0.5, 25, 60, None))
        g.owner[tp].pauses(g.t, None if until is None else g.t + until, tp)


def _rounds(g: _Group) -> None:
    """Rebalances, whose number goes up or back."""
    for _ in range(g.rng.randint(1, 3)):
        g.rebalance(g.rng.choice((1, 1, -1, -5)))


def _beats(g: _Group) -> None:
    """All tell twice that they live: also one that another process with its static id has followed."""
    for pause in (g.rng.choice((0.5, 2.0)), 0.1):
        for member in g.crew:
            member.heartbeat(g.t, error=g.rng.choice((None, None, "FENCED_INSTANCE_ID")))
        g.t += pause


_PLANTS: tuple[Callable[[_Group], None], ...] = (
    *(
        _lose,
        _alien,
        _go_back,
        _go_elsewhere,
        _abort,
        _skip,
        _unseen,
        _backwards,
        _commit_ahead,
        _commit_and_fall,
        _second_owner,
        _stale,
        _start_below,
        _hole,
    ),
    *(_loop, _act, _forget, _unassigned, _half_done, _leaderless),
    *(_commit_back, _commit_beyond, _write_late, _foreign, _untrue, _carry_on, _try_again),
    *(_twice, _crossed, _unguarded, _compact),
    *(_rounds, _beats, _pause),
)
