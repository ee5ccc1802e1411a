"""What ``fencepost try`` finds: ``python tests/benchmarks/services.py [--full] [--runs DIR] [SERVICE ...]``.

The services in ``tests/services`` were written before the battery existed; their README says which have a bug. Each is
tried with the plain command. The table has a row for each: whether it has a bug, and in which situations it was broken
or not seen. A correct service that is broken is accused wrongly; a wrong one that is kept is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from fencepost.battery import conduct, situations
from fencepost.battery.card import Card, Result
from fencepost.battery.request import BatteryRequest
from fencepost.clusters import backends
from fencepost.errors import FencepostError
from fencepost.repeat.batch import RunOptions

SERVICES = Path(__file__).parents[1] / "services"


def expected() -> dict[str, bool]:
    """The services, and whether each has a bug, by the table of their README."""
    rows = [line.split("|") for line in (SERVICES / "README.md").read_text(encoding="utf-8").splitlines()]
    return {row[1].strip(" `"): row[4].strip() == "buggy" for row in rows if len(row) > 4 and ".py" in row[1]}


def line(name: str, buggy: bool, card: Card | None, seconds: float, why: str = "") -> str:
    """A row of the table."""
    rows = card.rows if card else ()
    broken = [f"{row.situation}: {row.kind}" for row in rows if row.result is Result.BROKEN]
    unseen = [f"{row.situation}: {row.reason[:100]}" for row in rows if row.result is Result.NOT_SEEN]
    right = bool(broken) == buggy and bool(card)
    said = "; ".join([*broken, *(f"not seen, {one}" for one in unseen)]) or why or "all kept"
    return f"| {name} | {'bug' if buggy else 'correct'} | {'right' if right else 'WRONG'} | {said} | {seconds:.0f} s |"


def main() -> None:
    """Try all services, or those that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("services", nargs="*")
    asked = parser.parse_args()
    runs = (asked.runs or Path(tempfile.mkdtemp(prefix="services-"))).absolute()
    known = expected()
    os.chdir(SERVICES)
    chosen = situations.chosen(quick=not asked.full)
    where = RunOptions(runs, backends.local(), "local[*]")
    print("| service | it is | answer | situations | took |\n|---|---|---|---|---|", flush=True)
    with where.judge() as spark:
        for name in asked.services or known:
            data = runs / "data" / name
            data.mkdir(parents=True)
            os.environ["SERVICES_DATA"] = str(data)
            began = time.monotonic()
            folder = conduct.make_folder(runs, [name])
            request = BatteryRequest((sys.executable, name), payload="fakes:order")
            options = RunOptions(folder, where.cluster, where.spark_master)
            card, why = None, ""
            try:
                _, _, card = conduct.Battery(request, chosen, asked.seed, folder, options, conduct.Nobody()).run(spark)
            except FencepostError as error:
                why = str(error).splitlines()[0]
            print(line(name, known[name], card, time.monotonic() - began, why), flush=True)
    print(f"cards: {runs}")


if __name__ == "__main__":
    main()
