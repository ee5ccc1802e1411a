"""Reads the files of a run folder as plain values; what is missing or damaged becomes a ``Damage``, no exception."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fencepost.checkers.tables.rows import Damage

T = TypeVar("T")


@dataclass
class Reader:
    """Reads files under ``run`` and remembers what was wrong with them in ``damage``."""

    run: Path
    damage: list[Damage] = field(default_factory=list)

    def json(self, part: str, name: str) -> dict[str, Any]:
        """A JSON object; empty when it cannot be read."""

        def read(path: Path) -> dict[str, Any]:
            value = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(value, dict | list):
                raise ValueError("it holds no JSON object")
            return value if isinstance(value, dict) else {"": value}

        return self._try(part, name, read) or {}

    def lines(self, part: str, name: str) -> list[dict[str, Any]]:
        """The objects of a JSON-lines file; lines that are none are counted as damage, the others returned."""
        found: list[dict[str, Any]] = []
        bad: list[int] = []

        def read(path: Path) -> bool:
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                try:
                    value = json.loads(line)
                except ValueError:
                    value = None
                if isinstance(value, dict):
                    found.append(value)
                elif line.strip():
                    bad.append(number)
            return True

        self._try(part, name, read)
        if bad:
            self.note(part, name, f"{len(bad)} of its lines are no JSON objects, the first is line {bad[0]}")
        return found

    def events(self) -> list[dict[str, Any]]:
        """The rows of ``events.parquet`` in the order of time, ``detail`` decoded."""

        def read(path: Path) -> list[dict[str, Any]]:
            import pyarrow.parquet as pq

            rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
            for row in rows:
                row["detail"] = json.loads(row["detail"] or "{}")
            return sorted(rows, key=lambda row: (row["begin_ns"], row["actor"], row["id"]))

        return self._try("events", "history/events.parquet", read) or []

    def unsealed_events(self, actor: str) -> list[dict[str, Any]]:
        """What can be read of an actor's own event lines, which the seal makes ``events.parquet`` of.

        The last line of an id wins. No damage is noted: where there is no seal, that is said of the table.
        """
        found: dict[int, dict[str, Any]] = {}
        path = self.run / "history" / "events" / f"{actor}.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                event = json.loads(line)
                found[int(event["id"])] = {
                    **{name: int(event[name]) for name in ("begin_ns", "end_ns")},
                    "kind": event["kind"],
                    "detail": dict(event["detail"]),
                }
            except (ValueError, KeyError, TypeError):
                continue  # the last line of a writer that was killed is torn
        return list(found.values())

    def files(self, part: str, folder: str) -> list[Path]:
        """The Parquet files of a folder of the history; none is damage."""
        found = sorted((self.run / "history" / folder).glob("*.parquet"))
        if not found:
            self.note(part, f"history/{folder}", "it holds no Parquet file")
        return found

    def rows(self, part: str, path: Path, columns: Iterable[str]) -> Iterator[tuple[int, ...]]:
        """The rows of one Parquet file of integers, in the order of ``columns``; null is -1."""

        def read(path: Path) -> list[list[int]]:
            import pyarrow.parquet as pq

            table = pq.read_table(path, columns=list(columns))
            return [[-1 if v is None else v for v in table[name].to_pylist()] for name in columns]

        values = self._try(part, str(path.relative_to(self.run)), read)
        return zip(*values, strict=True) if values else iter(())

    def footer(self, part: str, path: Path, columns: Iterable[str]) -> None:
        """Look whether a Parquet file can be read and has these columns, without reading its rows."""

        def read(path: Path) -> None:
            import pyarrow.parquet as pq

            lacks = sorted(set(columns) - set(pq.read_schema(path).names))
            if lacks:
                raise ValueError(f"it lacks the column {lacks[0]}")

        self._try(part, str(path.relative_to(self.run)), read)

    def note(self, part: str, file: str, what: str) -> None:
        """Remember one damage."""
        self.damage.append(Damage(part, file, what))

    def _try(self, part: str, name: str, read: Callable[[Path], T]) -> T | None:
        try:
            return read(self.run / name)
        except FileNotFoundError:
            self.note(part, name, "it is missing")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:  # pyarrow's errors are these too
            self.note(
                part, name, f"it cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            )
        return None
