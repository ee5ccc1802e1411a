"""The database of a run for the store of its members, made before they start: a SQLite file in the history, or a schema
in a PostgreSQL database. The schema is removed after the run, however the harness ends.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fencepost.errors import ProvisionError
from fencepost.interfaces import Workload
from fencepost.interfaces.process import HasStore
from fencepost.processes.cleanup_process import CleanupProcess, serve
from fencepost_member.databases import Postgres, SchemaLocation, create_file, errors, make_tables

_LOG = logging.getLogger(__name__)
REMOVED_S = 60.0
HINT = "Does the server run, may this user create schemas there, and is the password in PGPASSWORD or ~/.pgpass?"
FILE_HINT = "Is this Python built with sqlite3, and is there space?"


@contextmanager
def of(workload: Workload, history: Path) -> Iterator[None]:
    """Create the database of a workload with a store: a file that stays, or a schema for the duration of the block.

    Raises:
        ProvisionError: it cannot be created.
    """
    if not isinstance(workload, HasStore):
        yield
        return
    if not workload.store:
        _make_file(history)
        yield
        return
    place = SchemaLocation(workload.store, f"fencepost_{uuid.uuid4().hex[:16]}")
    cleaner = _made(place)
    try:
        place.write(history)
        yield
    finally:
        for sentence in cleaner.finish(REMOVED_S):
            _LOG.warning("left in the database: %s", sentence)


def _make_file(history: Path) -> None:
    try:
        create_file(history)
    except errors() as error:
        raise ProvisionError(f"no SQLite file can be created in {history}: {_reason(error)}. {FILE_HINT}") from error


def _made(place: SchemaLocation) -> CleanupProcess:
    try:
        with closing(Postgres(place)) as db:
            cleaner = CleanupProcess(__name__, json.dumps(place))
            try:
                db.execute(f"CREATE SCHEMA {place.schema}")
                make_tables(db)
            except BaseException:
                cleaner.finish(REMOVED_S)
                raise
    except errors() as error:
        raise ProvisionError(f"no schema can be created in {place.address}: {_reason(error)}. {HINT}") from error
    return cleaner


def removed(place: SchemaLocation) -> list[str]:
    """Remove the schema; returns a sentence when that fails."""
    try:
        with closing(Postgres(place)) as db:
            db.execute(f"DROP SCHEMA IF EXISTS {place.schema} CASCADE")
    except errors() as error:
        return [f"the schema {place.schema} ({_reason(error)})"]
    return []


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    serve(lambda line, _: removed(SchemaLocation(*json.loads(line))))
