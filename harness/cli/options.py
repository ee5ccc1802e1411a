"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.clusters.names import METAVAR

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Backend = Annotated[
    str,
    typer.Option(
        metavar=METAVAR,
        help="A new cluster for each run, or one that exists, by its address, a container's name or a Compose file.",
    ),
]
Access = Annotated[
    Path | None,
    typer.Option("--cluster-config", metavar="FILE", help="SASL and TLS of attach, as name=value lines of librdkafka."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Allow runs on a cluster that is not on this machine.")]
Runs = Annotated[Path, typer.Option(help="Folder in which the command creates run folders.")]
Judged = Annotated[bool, typer.Option("--check/--no-check", help="Judge the run when it has ended.")]
Payload = Annotated[
    str,
    typer.Option(
        metavar="MODULE:FUNCTION|FILE.jsonl",
        help="Makes the records: function(key, seq) returns a value. Or sample messages, a JSON object a line, with "
        "key, value and headers.",
    ),
]
SparkMaster = Annotated[
    str, typer.Option(metavar="URL", help="Where Spark runs: local[*], spark://..., yarn, k8s://...")
]
SparkRemote = Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server: sc://...")]
