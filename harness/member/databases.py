"""The database of a ``Store``: one SQLite file in the run's history, or a schema of the run in a PostgreSQL database.

Both allow one writer at a time, so the order of effects is the order in which they were written. Statements have ``%s``
for values, and quote the column ``"offset"``, which is a reserved word in PostgreSQL.
"""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Sequence, Tuple, Type, Union

FILE = "store.sqlite"
PLACE = "store.json"  # the address of the database, if it is not the file
BUSY_S = 30  # a writer may be suspended in the middle of a transaction
NO_PSYCOPG = "the store is in PostgreSQL, which needs psycopg in this Python: pip install 'psycopg[binary]'"
_SCHEMA = (
    "CREATE TABLE leases (topic TEXT, partition BIGINT, owner TEXT, token BIGINT, until_ns BIGINT,"
    " PRIMARY KEY (topic, partition))",
    "CREATE TABLE effects (seq {counted},"
    ' topic TEXT, partition BIGINT, "offset" BIGINT, actor TEXT, token BIGINT, written_ns BIGINT)',
    'CREATE INDEX applied ON effects (topic, partition, "offset")',
)


class SchemaLocation(NamedTuple):
    """A PostgreSQL database, ``postgresql://...`` without a password, and the schema in it."""

    address: str
    schema: str

    def write(self, history: Path) -> None:
        """Write the address into the run's history, where ``opened`` reads it."""
        (history / PLACE).write_text(json.dumps(self._asdict()), encoding="utf-8")


class Sqlite:
    """A connection to a file that ``create_file`` made. Raises sqlite3.Error when it cannot be used, or is busy for
    ``BUSY_S``."""

    def __init__(self, file: Path) -> None:
        import sqlite3  # not every Python is built with it

        self._db = sqlite3.connect(str(file), timeout=BUSY_S, isolation_level=None)
        self.execute("PRAGMA synchronous = OFF")  # it must survive a crash of processes, not of the machine

    def execute(self, query: str, values: Sequence[Any] = ()) -> Any:
        """A cursor (PEP 249)."""
        return self._db.execute(query.replace("%s", "?"), values)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One write transaction; there is no other at the same time."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


class Postgres:
    """A connection to a schema whose tables exist. Raises psycopg.Error when it cannot be used, or is busy for
    ``BUSY_S``, and ImportError without psycopg."""

    def __init__(self, place: SchemaLocation) -> None:
        """libpq reads the password from PGPASSWORD, PGPASSFILE or ``~/.pgpass``."""
        if find_spec("psycopg") is None:
            raise ImportError(NO_PSYCOPG)
        import psycopg

        self._db = psycopg.connect(place.address, autocommit=True, connect_timeout=BUSY_S)
        self.execute("SET search_path TO %s" % place.schema)
        self.execute("SET lock_timeout TO '%ds'" % BUSY_S)

    def execute(self, query: str, values: Sequence[Any] = ()) -> Any:
        """See ``Sqlite``."""
        return self._db.execute(query, values)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """See ``Sqlite``; here readers do not wait."""
        with self._db.transaction():
            self.execute("LOCK TABLE effects IN EXCLUSIVE MODE")
            yield

    def close(self) -> None:
        """See ``Sqlite``."""
        self._db.close()


Database = Union[Sqlite, Postgres]


def make_tables(db: Database, counted: str = "BIGSERIAL PRIMARY KEY") -> None:
    """Create the tables; ``counted`` is the column type of a number that grows with each row."""
    for statement in _SCHEMA:
        db.execute(statement.format(counted=counted))


def create_file(history: Path) -> None:
    """Create the SQLite file of this run, with its tables.

    One process must do this before others open the file: SQLite does not wait for a lock when it switches a file to
    WAL, so of several processes that do it at the same time some fail with "database is locked".
    """
    with closing(Sqlite(history / FILE)) as db:
        db.execute("PRAGMA journal_mode = WAL")  # the file stays in this mode
        make_tables(db, "INTEGER PRIMARY KEY AUTOINCREMENT")


def there(history: Path) -> bool:
    """Whether this run has a store."""
    return (history / PLACE).exists() or (history / FILE).exists()


def opened(history: Path) -> Database:
    """A new connection to this run's store."""
    place = history / PLACE
    return (
        Postgres(SchemaLocation(**json.loads(place.read_text(encoding="utf-8"))))
        if place.exists()
        else Sqlite(history / FILE)
    )


def errors() -> Tuple[Type[Exception], ...]:
    """The exception types of both databases (PEP 249), if their drivers are installed, and ImportError."""
    drivers = [import_module(name) for name in ("sqlite3", "psycopg") if find_spec(name)]
    return (ImportError, *(driver.Error for driver in drivers))
