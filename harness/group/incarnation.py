"""Processes of members and producers, one incarnation at a time: started, watched, ended and reaped.

Each incarnation has its own actor name, configuration file and log. Its start and its end are events of the harness; it
reports everything else itself.
"""

from __future__ import annotations

import json
import os
import select
import signal as signals
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fencepost_member
from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import MemberError, WaitTimeout
from fencepost.group import programs, stacks
from fencepost.group.event_tail import last_poll_ns
from fencepost.group.process_consumers import ProcessConsumers
from fencepost.history import EventKind
from fencepost.history.atomic import replacing
from fencepost.interfaces.process import Interpreter, Process
from fencepost.processes.owner import ProcessOwner
from fencepost_member.recording.events import EventLog
from fencepost_member.stacks import STACKS

START_S = 30.0
KILL_S = 10.0
LATE_S = 5.0  # a process that was asked to end so long ago prints its stacks before it is killed
STACKS_S = 2.0
ENDING = frozenset({signals.SIGTERM, signals.SIGINT, signals.SIGKILL})
STRAY = "process {}, which consumes, has left the process group of its program, so faults do not hit it"


@dataclass(frozen=True)
class RunPaths:
    """Folders and owner of one run's processes.

    Attributes:
        owner: owns the processes and their configuration files.
        events: the harness's event log.
        history, logs: folders of the run.
    """

    owner: ProcessOwner
    events: EventLog
    history: Path
    logs: Path


class Incarnation:
    """One process of a member or producer: starts when created, ends when reaped."""

    def __init__(
        self, home: RunPaths, actor: str, module: str, config: Mapping[str, Any], interpreter: Interpreter
    ) -> None:
        """Start ``python -m module CONFIG.json``, or the interpreter's command instead, and return at once."""
        self.actor, self.log = actor, home.logs / f"{actor}.log"
        self._events, self._segments, self._lock = home.events, home.history / "segments", threading.Lock()
        self._exit_code: int | None = None
        self._sent: dict[int, int] = {}  # signal -> when it was first sent
        self._ended_ns = 0  # when the kernel reported its end
        self._place = ""  # where it was when it was killed, because it did not end as requested
        self._config = {**config, "actor": actor, "run": str(home.history)}
        self._file = file = home.owner.directory / "config" / f"{actor}.json"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        self._configure({})
        path = [str(member_side(home.owner.directory)), *map(str, interpreter.import_path)]
        begun_ns = now_ns()
        argv: list[str | Path] = [interpreter.python, "-m", module, file]
        own = [interpreter.env["PYTHONPATH"]] if "PYTHONPATH" in interpreter.env else []
        env = {**interpreter.env, "PYTHONPATH": ":".join([*path, *own])}
        self._command, self._lines, self._silent = interpreter.command, interpreter.lines, interpreter.silent
        self._process: Process
        here = partial(home.owner.spawn, groups=interpreter.groups)
        elsewhere: Callable[..., Process] | None = None
        if interpreter.spawn:
            elsewhere = partial(interpreter.spawn, history=home.history, image=interpreter.image)
        if interpreter.lines or interpreter.silent:
            self._process = programs.start_reporting(
                here, elsewhere, interpreter, self._config, file, self.log, path[0]
            )
        elif interpreter.command:
            self._process = programs.start_instrumented(here, elsewhere, interpreter, file, self.log, path[0])
        else:
            self._process = (elsewhere or here)(argv, log=self.log, env=env)
        threading.Thread(target=self._watch_end, daemon=True).start()
        several = bool(interpreter.command) and not (interpreter.lines or interpreter.silent)
        self.live = ProcessConsumers(home.history / "events", actor, self._process.pid, several)
        detail = {"pid": self._process.pid, **{k: config[k] for k in ("member", "slot", "writer") if k in config}}
        self._events.note(EventKind.LAUNCHED, actor=actor, detail=detail, begin_ns=begun_ns, end_ns=now_ns())

    @property
    def exit_code(self) -> int | None:
        """None while it runs. Reaps the process and writes its ended event once it has ended."""
        with self._lock:
            if self._exit_code is None:
                code = self._process.poll()
                if code is not None:
                    self._exit_code = int(code)
                    self._note_ends(int(code))
            return self._exit_code

    def _watch_end(self) -> None:
        """Wait for the end of the process and take its time: it may be reaped much later."""
        with suppress(OSError):  # it has been reaped already
            handle = os.pidfd_open(self._process.pid)
            try:
                ended = select.poll()
                ended.register(handle, select.POLLIN)
                ended.poll()
                self._ended_ns = now_ns()
            finally:
                os.close(handle)

    def _note_ends(self, code: int) -> None:
        """Write how all consumers in it ended, and which events were not recorded."""
        self.live.refresh()
        broken = getattr(self._process, "broken", "")
        for text in (*([broken] if broken else ()), *map(STRAY.format, sorted(self.live.strays))):
            self._events.note(EventKind.UNRECORDED, actor=self.actor, detail={"text": text})
        asked_ns = self._sent.get(signals.SIGTERM)
        asked = {"asked_ns": asked_ns, **({"place": self._place} if self._place else {})} if asked_ns else {}
        ended_ns = min((at_ns for number, at_ns in self._sent.items() if number in ENDING), default=0)
        for actor, (at_ns, how) in self.live.ends(self._how(code), ended_ns).items():
            sooner, polled_ns = bool(at_ns), last_poll_ns(self._segments, actor)
            waited = polled_ns >= (at_ns or now_ns())  # in its last poll, to its end
            polled = {"polled_ns": polled_ns} if polled_ns and not waited else {}
            at_ns = at_ns or self._ended_ns
            when = {"begin_ns": at_ns, "end_ns": at_ns} if at_ns else {}
            own = {"exit_code": None} if sooner else {"exit_code": code, **asked}
            detail = {**own, "how": how, **polled}
            self._events.note(EventKind.ENDED, actor=actor, detail=detail, **when)

    def _how(self, code: int) -> str:
        """How it ended. An end that was not requested is a crash, whatever the exit code: a clean exit as well, and the
        kernel's SIGKILL. Of a program that reports nothing it is only known that its end was requested."""
        asked = self._sent.keys() & {signals.SIGTERM, signals.SIGINT}
        if code == 0 or (
            code - 128 in asked and self._reported_closed()
        ):  # the exit code of a JVM with a shutdown hook
            return "closed" if asked else "crashed"
        if self._silent and asked and signals.SIGKILL not in self._sent:
            return "closed"
        return "killed" if self._sent.keys() & {-code, code - 128} else "crashed"  # the second as from a shell

    def _reported_closed(self) -> bool:
        return bool(self.live.reported(EventKind.CLOSED))

    @property
    def pid(self) -> int | None:
        """None once it has ended."""
        return None if self.exit_code is not None else int(self._process.pid)

    @property
    def polled_ns(self) -> int:
        """When it last called poll; 0: never, or unknown."""
        return last_poll_ns(self._segments, self.actor)

    @property
    def polls_in_vain(self) -> bool:
        """Whether every present consumer was polled, in its own process or in a fork of it, has paused no partition and
        reported no error, as of the last refresh. Whether it received records is another question."""
        present = self.live.present
        polled = (last_poll_ns(self._segments, name) or self.live.polled_by_fork(name) for name in present)
        idle = EventKind.PAUSED not in self.live.open and not self.live.errors
        return bool(present) and idle and all(polled)

    def wait_started(self) -> None:
        """Wait until its loop runs; for a silent program, its process. Raises MemberError when it ended instead."""

        def started() -> bool:
            self.live.refresh()
            if self._silent and self.exit_code is None:
                return True
            if self.live.started is None and self.exit_code is not None:
                raise MemberError(f"{self.actor} ended with exit code {self.exit_code} at its start: {self.log_end()}")
            return self.live.started is not None

        hint = programs.NO_LINES if self._lines else programs.NO_START if self._command else ""
        eventually(started, START_S, f"{self.actor} to start", state=self.log_end, hint=hint)
        if self._command and self.live.started is not None:
            self._must_be_the_member(self.live.started)

    def _must_be_the_member(self, started: Mapping[str, Any]) -> None:
        """Raises MemberError when faults would hit another process, or the judge would assume another protocol."""
        if self.live.strays:
            raise MemberError(
                f"{self.actor}: process {started['pid']} consumes, but it is a child of the started process "
                "and has left its process group, so faults would hit only the parent: keep it in the group, or make it "
                "the command"
            )
        client = self._config.get("client", started["client"])
        if started["client"] != client and not self._lines:  # a program with JSON lines names its library itself
            raise MemberError(
                f"{self.actor} consumes with {started['client']}, but the members of the scenario's group with "
                f"{client}: set client={started['client']!r} there"
            )
        if started["protocol"] != self._config["protocol"]:
            raise MemberError(
                f"{self.actor} uses the protocol {started['protocol']!r} of its own settings, but the scenario's group "
                f"uses {self._config['protocol']!r}: set protocol={started['protocol']!r} there"
            )

    def signal(self, number: int) -> None:
        """Send a signal; no-op when it has ended. One that did not end in time prints its stacks before a kill."""
        with self._lock:
            if self._exit_code is None and self._process.poll() is None:
                if number == signals.SIGKILL and self._is_late():
                    self._place = self._print_stacks()
                at_ns = now_ns()
                self._process.send_signal(signals.Signals(number))
                self._sent.setdefault(number, at_ns)  # only now: the engine of a container may have refused it

    def _is_late(self) -> bool:
        """Whether it should have ended, and can print where it is: Python on this machine, no child of the command."""
        asked_ns = self._sent.get(signals.SIGTERM, 0)
        started = self.live.started or {}
        reachable = STACKS is not None and started.get("pid") == self._process.pid and not (self._lines or self._silent)
        return bool(asked_ns) and reachable and STACKS not in self._sent and now_ns() - asked_ns > LATE_S * NS

    def _print_stacks(self) -> str:
        """Let it print its stacks into its log; returns where it is. Empty: it does not answer, as when stopped."""
        assert STACKS is not None
        before = self.log.stat().st_size if self.log.exists() else 0

        def printed() -> str:
            with self.log.open("rb") as log:
                log.seek(before)
                return log.read().decode(errors="replace")

        self._sent.setdefault(STACKS, now_ns())
        self._process.send_signal(STACKS)
        with suppress(WaitTimeout, OSError):
            eventually(lambda: stacks.complete(printed()), STACKS_S, f"{self.actor} to print its stacks")
        try:
            return stacks.place(printed())
        except OSError:
            return ""

    def reconfigure(self, **changes: Any) -> None:
        """Make it read its configuration again: its first one with ``changes``. No-op unless its loop runs."""
        self.live.refresh()
        if self.live.started is not None:  # before that, the signal would end it
            self._configure(changes)
            self.signal(signals.SIGHUP)

    def _configure(self, changes: Mapping[str, Any]) -> None:
        with replacing(self._file) as draft:
            draft.write_text(json.dumps({**self._config, **changes}, indent=1), encoding="utf-8")

    def wait_ended(self, within_s: float) -> int:
        """Wait for its end and return its exit code (negative: the signal's number)."""
        eventually(lambda: self.exit_code is not None, within_s, f"{self.actor} to end", state=self.log_end)
        assert self.exit_code is not None
        return self.exit_code

    def log_end(self) -> str:
        """The last lines of its log, as a clause."""
        try:
            with self.log.open(encoding="utf-8", errors="replace") as lines:
                return "its log ends with: " + ("".join(deque(lines, 10)).strip() or "nothing")
        except OSError as error:
            return f"its log cannot be read ({error})"


def stop(lives: Sequence[Incarnation], within_s: float) -> list[str]:
    """End processes cleanly, all at once; late ones are killed after ``within_s``. Returns the names of late ones."""
    for life in lives:
        life.signal(signals.SIGTERM)
    deadline_ns = now_ns() + int(within_s * NS)
    eventually(
        # All are reaped each time, also behind one that does not end: the time of an end is a fact.
        lambda: None not in [life.exit_code for life in lives] or now_ns() > deadline_ns,
        within_s + KILL_S,
        "processes to end",
    )
    late = [life for life in lives if life.exit_code is None]
    for life in late:
        life.signal(signals.SIGKILL)
        life.wait_ended(KILL_S)
    for life in lives:
        life.live.refresh()
    return [life.actor for life in late]


def member_side(directory: Path) -> Path:
    """A folder that contains only ``fencepost_member``, for an interpreter's import path."""
    folder = directory / "import"
    link = folder / "fencepost_member"
    if not link.is_symlink():
        folder.mkdir(exist_ok=True)
        link.symlink_to(Path(fencepost_member.__file__).parent, target_is_directory=True)
    return folder
