"""Reads the files of a run folder as plain values. A missing or damaged file becomes a ``Damage``, not an exception.

Returned values have the requested shape (``schemas``; for Parquet: the columns). A line or row of another shape is
counted as damage and left out; any other file of another shape is not returned at all. ``msgspec``, which checks the
shapes, is imported only where it is used: Spark executors may not have it, and they do not read these files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

from fencepost.checkers.tables.rows import Damage
from fencepost.history import DELIVERED_COLUMNS, DELIVERED_VERSION, EVENT_COLUMNS, FORMAT_VERSION, LACKING
from fencepost.history.run_folder import listed, opened

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ALWAYS_REPORTED = ("kind", "actor", "id", "begin_ns", "end_ns")  # columns of events without null
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)  # pyarrow's errors, too
BROKERS_RECORDS = ("offsets", "requests", "metadata")  # the parts that a cluster of another owner may not show
_OTHER_VERSION = "it has format version {}; {} can be judged"


class Deliveries(NamedTuple):
    """Columns of all deliveries of one incarnation.

    Attributes:
        as_recorded: whether begin, end and state are as they were recorded; if not, the seal has already applied the
            rule of processing (see ``DELIVERED_VERSION``).
        columns: numpy arrays by name.
    """

    incarnation: str
    as_recorded: bool
    columns: Mapping[str, Any]


@dataclass
class Reader:
    """Reads files under ``run``.

    Attributes:
        damage: collects the damage of the files.
        not_shown: collects the missing files of ``BROKERS_RECORDS`` that the cluster does not show.
    """

    run: Path
    damage: list[Damage] = field(default_factory=list)
    not_shown: list[Damage] = field(default_factory=list)

    def missing_reasons(self, cause: str) -> Mapping[str, str]:
        """The reason for each part of the history that is missing: ``parts`` that the cluster does not show, or parts
        that could not be read, ``failed``."""
        return self._lacking.get(cause, {})

    @cached_property
    def _lacking(self) -> Mapping[str, Mapping[str, str]]:
        try:
            with opened(self.run, self.run / LACKING) as file:
                found = json.loads(file.read())
            causes = {cause: found.get(cause, {}) for cause in ("parts", "failed")}
            return {cause: {str(part): str(why) for part, why in parts.items()} for cause, parts in causes.items()}
        except UNREADABLE:
            return {}  # then a missing part has no known reason

    def json(self, part: str, name: str, shape: Any) -> dict[str, Any]:
        """The JSON object in a file; empty if the file cannot be read."""

        def read(file: BinaryIO) -> dict[str, Any]:
            value = _decoded(file.read())
            version = value.pop("format_version", None) if isinstance(value, dict) else FORMAT_VERSION
            if version != FORMAT_VERSION:
                raise ValueError(_OTHER_VERSION.format(version, FORMAT_VERSION))
            found: dict[str, Any] = _shaped(value, shape)
            return found

        return self._try(part, name, read) or {}

    def lines(self, part: str, name: str, shape: Any, **needs: str) -> list[dict[str, Any]]:
        """The objects of a JSON-lines file, with the fields of ``shape`` only.

        Lines that cannot be read, or have another shape, are counted as damage and left out. ``needs``: the type of a
        line -> the field that every line of that type must have.
        """
        found: list[dict[str, Any]] = []
        bad: list[tuple[int, str]] = []

        def read(file: BinaryIO) -> None:
            import msgspec

            decode = msgspec.json.Decoder(shape).decode
            for number, line in enumerate(file.read().split(b"\n"), 1):
                try:
                    value = decode(line)
                    if needs and (needed := needs.get(value["type"])) and needed not in value:
                        raise ValueError(f"it is of type {value['type']} and lacks {needed}")
                    found.append(value)
                except UNREADABLE as error:
                    if line.strip():
                        bad.append((number, first_line(error)))

        self._try(part, name, read)
        if bad:
            number, why = bad[0]
            self.note(part, name, f"{len(bad)} of its lines cannot be read, the first is line {number}: {why}")
        return found

    def events(self) -> list[dict[str, Any]]:
        """The rows of ``events.parquet`` in the order of time; ``detail`` has only the fields of its shape."""
        found: list[dict[str, Any]] = []
        bad: list[str] = []
        name = "history/events.parquet"

        def read(file: BinaryIO) -> None:
            import msgspec
            import pyarrow.parquet as pq

            from fencepost.checkers.tables.schemas import EventDetail

            decode = cache(msgspec.json.Decoder(EventDetail).decode)  # most commits have the same detail
            table = pq.read_table(file, page_checksum_verification=True)
            if lack := misfit(table.schema, EVENT_COLUMNS):
                raise ValueError(lack)
            if nulls := [column for column in ALWAYS_REPORTED if table[column].null_count]:
                raise ValueError(f"its column {nulls[0]} is not always filled")
            for row in table.to_pylist():
                try:
                    found.append(row | {"detail": decode(row["detail"] or "{}")})
                except UNREADABLE as error:
                    bad.append(f"{row['kind']} of {row['actor']}: {first_line(error)}")

        self._try("events", name, read)
        if bad:
            self.note("events", name, f"{len(bad)} of its rows cannot be read, the first is {bad[0]}")
        if backwards := sum(0 < row["end_ns"] < row["begin_ns"] for row in found):
            self.note("events", name, f"{backwards} of its events end before they begin: its clock went back")
        return sorted(found, key=lambda row: (row["begin_ns"], row["actor"], row["id"]))

    def unsealed_events(self, actor: str) -> list[dict[str, Any]]:
        """The readable events in an actor's own file, one of the files from which the seal builds ``events.parquet``.

        Of lines with the same id, the last one counts. No damage is noted: if the seal did not build the table, the
        damage of the table says so.
        """
        from fencepost.checkers.tables.schemas import EventDetail

        found: dict[int, dict[str, Any]] = {}
        path = self.run / "history" / "events" / f"{actor}.jsonl"
        try:
            with opened(self.run, path) as file:
                lines = file.read().splitlines()
        except OSError:
            return []
        for line in lines:
            try:
                event = json.loads(line)
                found[int(event["id"])] = {
                    **{name: int(event[name]) for name in ("begin_ns", "end_ns")},
                    "kind": event["kind"],
                    "detail": _shaped(event["detail"], EventDetail),
                }
            except UNREADABLE:
                continue  # if the writer was killed, its last line may be incomplete
        return list(found.values())

    def files(self, part: str, folder: str) -> list[Path]:
        """The Parquet files of a folder of the history; a folder without any is damage."""
        found = listed(self.run, f"history/{folder}/*.parquet")
        if not found:
            self.note(part, f"history/{folder}", "it holds no Parquet file")
        return found

    def rows(self, part: str, path: Path, columns: Mapping[str, str]) -> Iterator[tuple[int, ...]]:
        """The rows of one Parquet file of integers, in the order of ``columns``; null is -1."""

        def read(file: BinaryIO) -> list[list[int]]:
            import pyarrow.parquet as pq

            if lack := misfit(pq.read_schema(file), columns):
                raise ValueError(lack)
            table = pq.read_table(file, columns=list(columns), page_checksum_verification=True)
            return [[-1 if v is None else v for v in table[name].to_pylist()] for name in columns]

        values = self._try(part, str(path.relative_to(self.run)), read)
        return zip(*values, strict=True) if values else iter(())

    def footer(self, part: str, path: Path, columns: Mapping[str, str]) -> None:
        """Check that a Parquet file can be read and has ``columns``, without reading its rows."""

        def read(file: BinaryIO) -> None:
            import pyarrow.parquet as pq

            if lack := misfit(pq.read_schema(file), columns):
                raise ValueError(lack)

        self._try(part, str(path.relative_to(self.run)), read)

    def deliveries(self, names: Sequence[str]) -> Iterator[Deliveries]:
        """Columns of delivered records, file by file; null is -1. Detectors report the files that cannot be read."""
        import pyarrow.parquet as pq

        for path in listed(self.run, "history/delivered/*.parquet"):
            with suppress(*UNREADABLE), opened(self.run, path) as file:
                schema = pq.read_schema(file)
                if not misfit(schema, DELIVERED_COLUMNS):
                    table = pq.read_table(file, columns=list(names), page_checksum_verification=True)
                    columns = {name: table[name].fill_null(-1).to_numpy() for name in names}
                    yield Deliveries(path.stem, _version(schema) == str(DELIVERED_VERSION), columns)

    def acknowledged(self) -> Iterator[Mapping[str, Any]]:
        """Partition, offset and time of each acknowledged send, file by file. Detectors report unreadable files."""
        import pyarrow.parquet as pq

        for path in listed(self.run, "history/produced/*.parquet"):
            with suppress(*UNREADABLE), opened(self.run, path) as file:
                table = pq.read_table(file, columns=["tp", "offset", "sent_ns"], page_checksum_verification=True)
                yield {name: table[name].fill_null(-1).to_numpy() for name in table.column_names}

    def note(self, part: str, file: str, what: str) -> None:
        """Add one row to ``damage``."""
        self.damage.append(Damage(part, file, what))

    def _try(self, part: str, name: str, read: Callable[[BinaryIO], T]) -> T | None:
        try:
            with opened(self.run, self.run / name) as file:
                return read(file)
        except FileNotFoundError:
            hidden = self.missing_reasons("parts").get(part, "")
            why = hidden or self.missing_reasons("failed").get(part, "")
            if hidden and part in BROKERS_RECORDS:
                self.not_shown.append(Damage(part, name, why))
            else:
                self.note(part, name, f"it is missing, because {why}" if why else "it is missing")
        except UNREADABLE as error:
            self.note(part, name, f"it cannot be read: {first_line(error)}")
        return None


def misfit(schema: pa.Schema, columns: Mapping[str, str]) -> str:
    """Why a Parquet schema does not have ``columns`` (integers may have any width); empty: it has them."""
    from pyarrow import types

    version, known = _version(schema), [str(FORMAT_VERSION)]
    if columns is DELIVERED_COLUMNS:
        known.append(str(DELIVERED_VERSION))
    if version not in known:
        return _OTHER_VERSION.format(version, " and ".join(known))
    for name, expected in columns.items():
        at = schema.get_field_index(name)
        if at < 0:
            return f"it lacks the column {name}"
        fits = types.is_integer if expected.startswith("int") else types.is_string
        if not fits(schema.field(at).type):
            return f"its column {name} is {schema.field(at).type}, and not {expected}"
    return ""


def _version(schema: pa.Schema) -> str:
    version: bytes = (schema.metadata or {}).get(b"format_version", b"%d" % FORMAT_VERSION)
    return version.decode(errors="replace")


def _decoded(text: bytes | str) -> Any:
    import msgspec

    return msgspec.json.decode(text)


def _shaped(value: Any, shape: Any) -> Any:
    """``value`` unchanged, if it has the shape; else msgspec's error, a ``ValueError``, names the difference."""
    import msgspec

    msgspec.convert(value, shape)
    return value


def first_line(error: Exception) -> str:
    """The first line of an error's message; its type if it has none."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
