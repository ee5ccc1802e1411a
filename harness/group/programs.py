"""Members that are users' programs: how they are started, and how they are recorded.

An instrumented program records itself, see ``fencepost_member.instrument``. For a program that reports its actions as
JSON lines, a scribe process records them. Programs that report nothing are started in the same way and not recorded.

Such a program finds its settings in its command, where ``{bootstrap}``, ``{group}``, ``{topics}`` (separated by
commas), ``{client_id}``, ``{instance_id}`` (empty: none) and ``{config}`` (a properties file with all of them but the
topics, and the settings of the scenario's group) are replaced; and in the environment as ``FENCEPOST_BOOTSTRAP`` and so
on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fencepost.clock import NS, now_ns
from fencepost.errors import MemberError
from fencepost.interfaces.process import Environment, Interpreter, Process
from fencepost.model.clients import BLACK_BOX, VERIFIABLE
from fencepost.model.settings import HEARTBEAT, SESSION, STRATEGY
from fencepost.processes.owner import send
from fencepost_member.adapters.settings import ACCESS_PREFIXES, ISOLATION, READ_COMMITTED, STRATEGIES
from fencepost_member.config import AUTOMATIC

NO_LINES = "It does not report startup_complete. Does the program flush its output after each line?"
NO_START = (
    "No consumer of a client library that is instrumented (confluent-kafka, kafka-python, aiokafka) subscribed to the "
    "run's topics. Is the program Python, without the options -I, -E and -S, which keep it from importing "
    "sitecustomize? Does it subscribe to the topics of the scenario?"
)
PATH = "PYTHONPATH"
OF_ALL = (signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL)
READ_ON_S = 5.0  # for further output of its children
ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


class ReportingProgram:
    """A program, and the scribe that reads its output. Satisfies ``Process`` for the program, which counts as ended
    once all of its output is recorded.

    Attributes:
        broken: how the scribe failed; empty: it did not.
    """

    def __init__(self, program: Process, scribe: Process) -> None:
        self._program, self._scribe, self._ended_ns, self.broken = program, scribe, 0, ""

    @property
    def pid(self) -> int:
        """See ``Process``."""
        return self._program.pid

    def poll(self) -> int | None:
        """See ``Process``."""
        code, read = self._program.poll(), self._scribe.poll()
        if code is None:
            return None
        self._ended_ns = self._ended_ns or now_ns()
        if read is None and now_ns() < self._ended_ns + READ_ON_S * NS:
            return None
        if read is None:
            self.broken = "a child of the program still has its output open"
            send(self._scribe, signal.SIGKILL)
        elif read:
            self.broken = f"its scribe ended with exit code {read}"
        return code

    def send_signal(self, sig: int) -> None:
        """See ``Process``."""
        self._program.send_signal(sig)

    def status(self) -> str:
        """See ``Process``."""
        return self._program.status()


class ProcessGroup:
    """A program and the processes that it forks. Satisfies ``Process`` for the program; its end is also theirs.

    A signal that stops, continues or kills goes to its whole process group at once; any other goes to the program,
    which must inform its children.
    """

    def __init__(self, program: Process) -> None:
        """``program`` leads a process group."""
        self._program = program

    @property
    def pid(self) -> int:
        """See ``Process``."""
        return self._program.pid

    def poll(self) -> int | None:
        """See ``Process``. Until the program is reaped, no other process can get its group id."""
        with suppress(ChildProcessError):  # reaped already by its owner, who ended them all
            if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return None
            os.killpg(self.pid, signal.SIGKILL)
        return self._program.poll()

    def send_signal(self, sig: int) -> None:
        """See ``Process``."""
        if sig in OF_ALL:
            os.killpg(self.pid, sig)
        else:
            self._program.send_signal(sig)

    def status(self) -> str:
        """See ``Process``."""
        return self._program.status()


def start_instrumented(
    here: Callable[..., Process],
    elsewhere: Callable[..., Process] | None,
    interpreter: Interpreter,
    config: Path,
    log: Path,
    member_side: str,
) -> Process:
    """Start an instrumented program; its own PYTHONPATH follows ours. See ``start_reporting``."""
    path = [str(Path(member_side, "fencepost_member", "instrument", "site")), member_side]
    own = interpreter.env.get(PATH) or ("" if elsewhere else os.environ.get(PATH))
    path += [own] if own else []
    env = {**interpreter.env, "FENCEPOST_MEMBER": str(config), PATH: os.pathsep.join(path)}
    if elsewhere:
        return elsewhere(interpreter.command, log=log, env=env)
    return ProcessGroup(here(interpreter.command, log=log, env=env, cwd=Path.cwd()))


def start_reporting(
    here: Callable[..., Process],
    elsewhere: Callable[..., Process] | None,
    interpreter: Interpreter,
    config: Mapping[str, Any],
    file: Path,
    log: Path,
    member_side: str,
) -> Process:
    """Start a program and, unless it reports nothing, its scribe; both belong to the owner.

    Args:
        here: starts processes on this machine.
        elsewhere: starts the program in its own place, such as a container; None: here.
        interpreter: has the program's command and environment variables.
        config: of the member, stored in ``file``; the properties file is written to the same folder.
        log: gets the program's other output.
        member_side: the folder from which the scribe imports.
    """
    properties = file.with_suffix(".properties")
    properties.write_text(_properties(config), encoding="utf-8")
    words = {
        "bootstrap": config["bootstrap"],
        "group": config["group"],
        "topics": ",".join(sorted(config["topics"])),
        "client_id": config["actor"],
        "instance_id": config["instance_id"] or "",
        "config": str(properties),
    }
    more = _verifiable(config) if config["client"] == VERIFIABLE else ()
    argv = [_filled(part, words) for part in (*interpreter.command, *more)]
    env = {**interpreter.env, **{f"FENCEPOST_{name.upper()}": word for name, word in words.items()}}
    start = elsewhere or partial(here, cwd=Path.cwd())
    if config["client"] == BLACK_BOX:
        return start(argv, log=log, env=env)
    pipe = file.with_suffix(".lines")  # a named pipe, as the program may be in a container
    os.mkfifo(pipe)
    program = start([*_with(">", pipe), *argv], log=log, env=env)
    scribe = [*_with("<", pipe), sys.executable, "-m", "fencepost_member.json_lines", str(file), str(program.pid)]
    return ReportingProgram(program, here(scribe, log=log, env={PATH: member_side}))


def _with(way: str, pipe: Path) -> list[str]:
    """The beginning of a command that writes into a pipe, or reads from it, once its other end is open."""
    return ["/bin/sh", "-c", f'exec "$@" {way}"$0"', str(pipe)]


def interpreter(found: Interpreter, command: tuple[str, ...], environment: Environment) -> Interpreter:
    """The interpreter of a member: the cluster's, with the group's command if there is one."""
    library, image = environment.client.library, environment.image
    if not command:
        return found
    return replace(found, command=command, lines=library.lines, silent=library.silent, image=image)


def importing(options: Mapping[str, Any], interpreter: Interpreter) -> Interpreter:
    """Add the current directory to the import path if functions of the user's are imported."""
    here = (Path.cwd(),) if options.get("payload") or options.get("handler") else ()
    return replace(interpreter, import_path=(*interpreter.import_path, *here))


def _filled(part: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        part = part.replace(f"{{{name}}}", word)
    return part


def _properties(config: Mapping[str, Any]) -> str:
    """The properties file, for Kafka's own clients and other programs. Times that the brokers decide are omitted."""
    brokers = (SESSION, HEARTBEAT) if config["protocol"] == "consumer" else ()
    own = {name: value for name, value in config["client_config"].items() if name not in brokers}
    names = {"bootstrap.servers": config["bootstrap"], "group.id": config["group"], "client.id": config["actor"]}
    static = {"group.instance.id": config["instance_id"]} if config["instance_id"] else {}
    usual = {ISOLATION: READ_COMMITTED} if config["client"] == VERIFIABLE else {}  # as with our other clients
    return "".join(f"{name}={_plain(value)}\n" for name, value in {**usual, **own, **names, **static}.items())


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).replace("\\", "\\\\")


def _verifiable(config: Mapping[str, Any]) -> list[str]:
    """The arguments of Kafka's VerifiableConsumer. Raises MemberError. (Kafka 3 accepts this file option only.)"""
    own, protocol = config["client_config"], config["protocol"]
    if access := [name for name in own if name.startswith(ACCESS_PREFIXES)]:
        raise MemberError(f"{VERIFIABLE} is a client in Java, which has no setting {access[0]} of librdkafka's")
    argv = ["--bootstrap-server", "{bootstrap}", "--topic", "{topics}", "--group-id", "{group}", "--verbose"]
    argv += ["--consumer.config", "{config}", "--reset-policy", str(own.get("auto.offset.reset", "earliest"))]
    if protocol == "consumer":
        argv += ["--group-protocol", "consumer"]
    else:
        names = str(own.get(STRATEGY, STRATEGIES[protocol])).split(",")
        classes = (f"org.apache.kafka.clients.consumer.{ASSIGNORS[name.strip()]}" for name in names)
        argv += ["--assignment-strategy", ",".join(classes), "--session-timeout", str(own[SESSION])]
    if config["instance_id"]:
        argv += ["--group-instance-id", "{instance_id}"]
    return [*argv, *(["--enable-autocommit"] if config["loop"].get("commit") in AUTOMATIC else [])]
