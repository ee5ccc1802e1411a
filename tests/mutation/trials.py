"""Tries mutants in one pytest session: each is a child of this process.

A test notices a mutant when it fails. Most are found cheaply: each test leaves run folders, and what is told of them is
known (``unchanged``); a child tells it again, and where that differs, the test that left the folder is run. Who noticed
the last ones of a function is asked first about the next; then who tells of a kind of its name, then whatever
is cheap.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation import trampoline

from mutation import mutants, unchanged
from mutation.mutants import Mutant
from mutation.unchanged import Probe

LIMIT_S = 10  # of CPU for one test or look: a busy machine kills nobody, and a mutant that turns for ever is noticed
KEPT_EVERY = 50


class Trials:
    """A pytest plugin.

    Args:
        folder: in which the mutants are.
        todo: the mutants to try.
        limit_s: CPU seconds for the trial of one.
        jobs: so many at once.
    """

    def __init__(self, folder: Path, todo: Sequence[Mutant], limit_s: float, jobs: int) -> None:
        self.folder, self.todo, self.limit_s, self.jobs = folder, todo, limit_s, jobs
        self.noticed: dict[str, Counter[Probe]] = defaultdict(Counter)  # by function and by module

    def pytest_configure(self) -> None:
        """The same examples each time: else whether a mutant is noticed would be a matter of luck."""
        from hypothesis import HealthCheck, settings  # once pytest has taken it for its plugin

        slow = [HealthCheck.too_slow]
        settings.register_profile("mutation", derandomize=True, deadline=None, suppress_health_check=slow)
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        say = session.config.pluginmanager.getplugin("terminalreporter").write_line
        self.config = session.config
        self.items: Mapping[str, pytest.Item] = {item.nodeid: item for item in session.items}
        self.probes = unchanged.probes(self.folder, session)
        if session.testsfailed:
            return True
        self.tests = {probe.name: probe for probe in self.probes if not probe.test}
        self.text = {probe: f"{probe.name} {probe.told}" for probe in self.probes}
        say(f"\n{len(self.items)} tests pass; {sum(bool(p.test) for p in self.probes)} looks at what they leave")
        gc.collect()
        gc.freeze()  # what children do not touch is not copied
        begun, fates, kept = time.monotonic(), Counter[str](), list[tuple[Mutant, str]]()
        for done, (mutant, fate, by) in enumerate(self._tried(), 1):
            fates[fate] += 1
            kept.append((mutant, fate))
            for place in (mutant.function, mutant.module):
                self.noticed[place].update(self.probes[n] for n in by)
            if done % KEPT_EVERY == 0 or done == len(self.todo):
                with chdir(self.folder):
                    mutants.keep(kept)
                kept.clear()
                say(f"{done} of {len(self.todo)} in {time.monotonic() - begun:.0f} s: {dict(fates)}", flush=True)
        return True

    def _tried(self) -> Iterator[tuple[Mutant, str, list[int]]]:
        """Each mutant with its fate and the numbers of the probes that noticed it, in whatever order they end."""
        queue = list(reversed(self.todo))
        running: dict[int, tuple[Mutant, int, Path]] = {}
        while queue or running:
            while queue and len(running) < self.jobs:
                mutant, folder = queue.pop(), Path(tempfile.mkdtemp(prefix="mutant-"))
                reader, writer = os.pipe()
                pid = os.fork()
                if pid == 0:
                    self._be(mutant, folder, writer)
                os.close(writer)
                running[pid] = mutant, reader, folder
            pid, status = os.wait()
            mutant, reader, folder = running.pop(pid)
            with os.fdopen(reader) as pipe:
                reported = pipe.read()
            shutil.rmtree(folder, ignore_errors=True)
            if os.WIFEXITED(status) and not reported:
                raise RuntimeError(f"the trial of {mutant.name} itself failed")
            yield (
                mutant,
                *(json.loads(reported) if reported else ("noticed", [])),
            )  # nothing: it turned for ever, or crashed

    def _be(self, mutant: Mutant, folder: Path, writer: int) -> None:
        """In a child, to its end: the mutant."""
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            self.config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
            trampoline.get_mutant_under_test = lambda: mutant.name  # it would look at the environment at each call
            fate, by = self._fate(mutant)
            os.write(writer, json.dumps([fate, [self.probes.index(probe) for probe in by]]).encode())
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(0)

    def _fate(self, mutant: Mutant) -> tuple[str, list[Probe]]:
        here, beside = self.noticed[mutant.function], self.noticed[mutant.module]
        reaching = [probe for probe in self.probes if mutant.function in probe.reached]
        lines = mutant.lines(self.folder / "mutants")
        reaching = [p for p in reaching if p.reached[mutant.function] & lines] or reaching
        kind = mutant.place.rpartition(".")[2].replace("_", "-")
        reaching.sort(key=lambda p: (-here[p] / p.cost_s, -beside[p] / p.cost_s, kind not in self.text[p], p.cost_s))
        if not reaching:
            return "unreached", []
        passed, shown = set[Probe](), False
        for probe in reaching:
            test = self.tests[probe.test or probe.name]
            if time.process_time() > self.limit_s:
                break
            if test in passed or (probe.test and not self._notices(probe)):
                continue
            if self._notices(test):
                return "noticed", list({probe, test})
            passed.add(test)
            shown |= bool(probe.test)
        return "shown" if shown else "unnoticed", []

    def _notices(self, probe: Probe) -> bool:
        from mutation import looks

        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)  # nobody handles it: the child ends
        if probe.test:
            return looks.told(getattr(looks, probe.name), probe.run) != probe.told
        return any(report.failed for report in runtestprotocol(self.items[probe.name], log=False, nextitem=None))
