"""The table of claims: what shows that each kind of finding is found, and is found only where it is.

Every kind has a rule that defines it, a hand-written history that shows it, a near miss that differs in a detail and
must not, and a bug that turns it red on a real cluster. The table is made of the registries that the checkers and the
tests themselves work through, so that it cannot say more than they do. ::

    make claims      # prints it as Markdown
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from cluster import planted
from history.builder import HistoryBuilder
from history.hand_written import cases

from fencepost.checkers import group_rules, oracle, promises


@dataclass
class Claim:
    """The evidence for one kind: names of functions, stories and bugs."""

    rules: list[str] = field(default_factory=list)
    histories: list[str] = field(default_factory=list)
    near_misses: list[str] = field(default_factory=list)
    planted_bugs: list[str] = field(default_factory=list)


def claims() -> dict[str, Claim]:
    """Every kind that a rule can report or a promise speaks of, in the order of the alphabet."""
    found: dict[str, Claim] = defaultdict(Claim)
    for promise in promises.__all__:
        for kind in getattr(promises, promise).kinds:
            found[kind] = Claim()  # whatever else there is for it
    for kind, rule in _rules():
        found[kind].rules.append(rule)
    with tempfile.TemporaryDirectory() as folder:
        stories = list(_stories(Path(folder)))
    for kind, claim in found.items():  # first the stories that are about it, then those that show it besides
        mine = sorted((s for s in stories if kind in s.shown), key=lambda s: s.shown[0] != kind)
        claim.histories += [s.name for s in mine]
        claim.near_misses += [s.name for s in mine if kind in s.spared]
    for kind, bugs in planted.by_kind().items():
        found[kind].planted_bugs += bugs
    return dict(sorted(found.items()))


def _rules() -> Iterator[tuple[str, str]]:
    """Each kind with the rules that can report it."""
    of_all: Mapping[Callable[..., Any], tuple[str, ...]] = {**oracle.RULES, **group_rules.RULES}
    for rule, kinds in of_all.items():
        for kind in kinds:
            yield kind, f"`{rule.__module__.removeprefix('fencepost.checkers.')}.{rule.__name__}`"


class Story(NamedTuple):
    """A hand-written history: the kinds that it shows, and those of them that some near miss does not."""

    name: str
    shown: list[str]
    spared: set[str]


def _stories(folder: Path) -> Iterator[Story]:
    for number, case in enumerate(cases()):
        if callable(case):
            wrong, right = ([t[0] for t in case(HistoryBuilder(folder / f"{number}-{w}", 2), w)] for w in (True, False))
            name, others = case.__name__, [right]
        else:
            wrong, *others = ([kind for kind, *_ in shown] for shown in case.ways.values())
            name = case.tell.__name__
        spared = {kind for kind in wrong if any(kind not in other for other in others)}
        yield Story(name.replace("_", " "), wrong, spared)


def markdown(table: Mapping[str, Claim]) -> str:
    """The table: of each cell the first name, and how many more there are."""
    columns = [f.name for f in fields(Claim)]
    lines = [f"| kind | {' | '.join(columns).replace('_', ' ')} |", f"|{'---|' * (1 + len(columns))}"]
    for kind, claim in table.items():
        lines.append(f"| `{kind}` | {' | '.join(_cell(getattr(claim, name)) for name in columns)} |")
    return "\n".join(lines)


def _cell(names: list[str]) -> str:
    return f"{names[0]} (+{len(names) - 1})" if len(names) > 1 else "".join(names)


if __name__ == "__main__":
    print(markdown(claims()))
