"""Contestants in processes of their own: the seconds of each turn, the memory of the whole tree of processes, limits.

Memory is PSS (proportional set size): a page that several processes share counts once in all, so that workers forked
from one parent are not counted too high. Where the kernel does not tell it, it is RSS, which counts such pages often.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

Play = Callable[[Path], Any]
TICK_S = 0.2
MEASURE = "PSS" if Path("/proc/self/smaps_rollup").exists() else "RSS"


@dataclass(frozen=True)
class Turn:
    """One turn: wall seconds and CPU seconds (user and system, of all processes), and what came out.

    Attributes:
        peak: the greatest bytes of memory of the tree of processes; 0 when nobody looked.
        failed: why there is no answer; empty when there is one.
    """

    seconds: float
    cpu_s: float
    peak: int
    answer: Any
    failed: str = ""


class Contestant:
    """A function in a new process, which lives from turn to turn, so that what starts slowly is warm in later ones."""

    def __init__(self, play: Play, *, seconds: float, memory: int) -> None:
        """``seconds`` and ``memory`` (bytes) bound each turn."""
        self._limits = seconds, memory
        spawn = multiprocessing.get_context("spawn")
        self._pipe, other = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(play, other))
        self._process.start()
        other.close()
        self._root = psutil.Process(self._process.pid)

    def turn(self, run: Path, *, watched: bool) -> Turn:
        """Let it play once. Over its limits it is ended. ``watched``: look at its memory, which costs it a little."""
        began, cpu_s, peak = time.perf_counter(), self._cpu_s(), 0
        seconds, memory = self._limits
        try:
            self._pipe.send(run)
            while not self._pipe.poll(TICK_S):
                peak = max(peak, self._memory()) if watched else 0
                if peak > memory:
                    return self._over(Turn(0, 0, peak, None, f"over {memory / 2**30:g} GiB"))
                if time.perf_counter() - began > seconds:
                    return self._over(Turn(0, 0, peak, None, f"over {seconds / 60:g} minutes"))
            took_s, answer, failed = self._pipe.recv()
        except (EOFError, OSError):
            return self._over(Turn(0, 0, peak, None, "its process ended"))
        return Turn(took_s, self._cpu_s() - cpu_s, peak, answer, failed)

    def end(self) -> None:
        """End its process, and all that it started."""
        with suppress(OSError):
            self._pipe.send(None)
        self._process.join(10 * TICK_S)
        self._over(None)

    def _over(self, turn: Any) -> Any:
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.join()
        return turn

    def _tree(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _cpu_s(self) -> float:
        return sum(sum(times[:4]) for times in self._ask(lambda process: process.cpu_times()))

    def _memory(self) -> int:
        return sum(self._ask(_memory))

    def _ask(self, question: Callable[[psutil.Process], Any]) -> Iterator[Any]:
        for process in self._tree():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied, OSError):
                yield question(process)


def _memory(process: psutil.Process) -> int:
    if MEASURE == "RSS":
        return int(process.memory_info().rss)
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _serve(play: Play, pipe: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the progress bars and warnings of the engines
        os.dup2(quiet, stream)
    while (run := pipe.recv()) is not None:
        began = time.perf_counter()
        try:
            answer, failed = play(run), ""
        except Exception as error:
            answer, failed = None, traceback.format_exception_only(error)[-1].strip()
        pipe.send((time.perf_counter() - began, answer, failed))
