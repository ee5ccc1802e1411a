"""The effects of a user's own program, read by a function of the user: which records took effect, and how often.

Only the function knows how to read the effects, from a table or a topic. It reports neither the member nor the time.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fencepost.clock import NS, now_ns
from fencepost.errors import MemberError, WaitTimeout
from fencepost.evidence import audit, effects
from fencepost.interfaces import Cluster, Workload
from fencepost.interfaces.process import ReportsEffects
from fencepost.model.run_names import RunNames
from fencepost.processes.owner import ProcessOwner, send, wait_ended
from fencepost_member.effects import SETTINGS
from fencepost_member.recording.events import EventLog

AGAIN_S = 1.0
READ_S = 60.0
PARTS = ("effects", "delivered")  # unknown without effects; "delivered", because effects show what was processed

Named = tuple[str, int, int] | int  # topic, partition, offset; or the number (seq) in the record's payload


class ProgramEffects:
    """Calls the function of a workload. Without one, there are no effects to record and nothing to wait for."""

    def __init__(self, workload: Workload, cluster: Cluster, owner: ProcessOwner, logs: Path, names: RunNames) -> None:
        """``names``: converts names of the scenario, which the program uses, to names in the cluster.

        Raises:
            MemberError: there is no such function.
        """
        self._function = workload.effects if isinstance(workload, ReportsEffects) else ""
        self._ordered = isinstance(workload, ReportsEffects) and workload.effects_in_order
        self._writers = workload.producer_config().get("producers", 1)
        self._settings = {**cluster.access, "bootstrap.servers": cluster.bootstrap()}
        self._owner, self._log, self._names = owner, logs / "effects.log", names
        self._next_ns, self.state = 0, ""
        if self._function:
            self._call_function()

    def there(self, count: int) -> bool:
        """Whether at least ``count`` records have an effect now; False while the function fails. The function is called
        at most every ``AGAIN_S``; ``state`` describes its last answer."""
        if not self._function:
            return True
        if now_ns() < self._next_ns:
            return False
        try:
            found = len(set(self._read()))
        except MemberError as error:
            self.state = str(error)
            return False
        finally:
            self._next_ns = now_ns() + round(AGAIN_S * NS)
        self.state = f"{found:,} of {count:,} records have one"
        return found >= count

    def collect(self, history: Path, entries: Sequence[Mapping[str, Any]], events: EventLog) -> None:
        """Record every effect of a record in the log, or that the effects are unknown. All members must have ended, and
        the audit must have read the log; ``entries`` are the audit's entries of ``partitions.json``."""
        if not self._function:
            return
        try:
            found, at_ns = self._read(), now_ns()
            places = list(self._places(found, history, entries))
        except MemberError as error:
            effects.record_unknown(events, str(error), PARTS)
        else:
            keys = _keys(history, entries) if self._ordered else {}
            whole = (effects.RecordedEffect(*p, events.actor, at_ns, at_ns, key=keys.get(p, -1)) for p in places)
            effects.record(whole, events)

    def _places(
        self, found: Sequence[Named], history: Path, entries: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[str, int, int]]:
        """The records of the effects, in the given order: topic, partition, offset. A number that is not in the log is
        left out.

        Raises:
            MemberError: an effect names a record that does not exist.
        """
        ends = {(entry["topic"], entry["partition"]): entry["log_end"] for entry in entries}
        numbers = [effect for effect in found if isinstance(effect, int)]
        if numbers and self._writers > 1:
            raise MemberError(
                f"{self._function} names records by seq, but {self._writers} producers each count their own: return "
                "topic, partition and offset, or use one producer"
            )
        written = _written(history, entries) if numbers else {}
        counts: Counter[int] = Counter()
        for effect in found:
            if isinstance(effect, int):
                places = written.get(
                    effect
                )  # a client may have written it twice; then its effects are spread over both
                if places:
                    yield places[counts[effect] % len(places)]
                counts[effect] += 1
                continue
            topic, partition, offset = self._names.in_cluster(effect[0]), *effect[1:]
            if offset >= ends.get((topic, partition), 0):
                raise MemberError(f"{self._function} reports an effect of {effect}, but there is no such record")
            yield topic, partition, offset
        for seq, count in counts.items():
            yield from written.get(seq, [])[count:]

    def _read(self) -> list[Named]:
        path = self._owner.directory / "effects.jsonl"
        path.unlink(missing_ok=True)
        self._call_function(path)
        rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
        return [effect if isinstance(effect, int) else tuple(effect) for effect in rows]

    def _call_function(self, *into: Path) -> None:
        """Call the function in a process; it writes its effects ``into`` a file, if one is given.

        Raises:
            MemberError: it failed, or took longer than ``READ_S``.
        """
        argv = [sys.executable, "-P", "-m", "fencepost_member.effects", self._function, *map(str, into)]
        env = {SETTINGS: json.dumps(self._settings)}
        process = self._owner.spawn(argv, log=self._log, env=env, cwd=Path.cwd())
        try:
            code = wait_ended(process, READ_S)
        except WaitTimeout as late:
            raise MemberError(f"the function of effects {self._function} took longer than {READ_S:g} s") from late
        finally:
            send(process, 9)
        if code:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise MemberError(lines[-1] if lines else f"the function of effects {self._function} ended with {code}")


def _written(history: Path, entries: Sequence[Mapping[str, Any]]) -> dict[int, list[tuple[str, int, int]]]:
    """The records of producers in the log: number (seq) -> topic, partition and offset of each such record."""
    names = {entry["tp"]: (entry["topic"], entry["partition"]) for entry in entries}
    log = pq.read_table(history / audit.FILE, columns=["tp", "offset", "seq"], filters=[("writer", ">=", 0)])
    found: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for tp, offset, seq in zip(*(log[name].to_pylist() for name in ("tp", "offset", "seq")), strict=True):
        found[seq].append((*names[tp], offset))
    return found


def _keys(history: Path, entries: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, int], int]:
    """The number of the key of each record in the log; -1: it has none."""
    names = {entry["tp"]: (entry["topic"], entry["partition"]) for entry in entries}
    log = pq.read_table(history / audit.FILE, columns=["tp", "offset", "key"])
    columns = (log[name].to_pylist() for name in ("tp", "offset", "key"))
    return {(*names[tp], offset): key for tp, offset, key in zip(*columns, strict=True)}
