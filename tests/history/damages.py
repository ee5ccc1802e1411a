"""A whole run folder, sealed by the real seal, and what can become of its files."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.evidence.sealing.seal import seal
from history import random_histories, retelling

JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000") + bytes(range(256)) * 4
STRANGE = '{"hello": [1, {"world": null}], "api": 7, "type": [], "kind": {}, "at_ns": "soon", "offsets": [[1]]}\n'
SEED = 401
HOSTILE = "\x1b[31m\x1b]0;title\x07\x9b2J\x00\r\u202e../../etc/passwd</script><img src=x onerror=alert(1)>{{7*7}}[red]"
HOSTILE += "long " * 2_000


def whole_run(folder: Path, *, sealed: bool = True) -> Path:
    """A run of correct members in which every file has something to lose."""
    reported = random_histories.tame(folder / "told", SEED, guest=True)
    run = retelling.retold(reported, folder / "run", retelling.unsealed)
    retelling.record(reported, run, 16)
    shutil.copytree(reported / "history" / "events", run / "history" / "events")
    (run / "history" / "events.parquet").unlink()
    if sealed:
        seal(run)
    return run


Damage = Callable[[Path], object]


def _bytes(change: Callable[[bytes], bytes]) -> Damage:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def _instead(content: bytes | str) -> Damage:
    return _bytes(lambda _: content if isinstance(content, bytes) else content.encode())


def _flipped(data: bytes) -> bytes:
    """Some of its bits have turned, wherever they are."""
    rng, found = random.Random(1), bytearray(data)
    for _ in range(20):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _linked(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _instead_of_it(kind: int) -> Damage:
    return lambda path: (path.unlink(), os.mknod(path, kind | 0o600))


def _led_out(path: Path) -> None:
    """The very file is outside of the run folder."""
    run = next(folder for folder in path.parents if (folder / "history").is_dir())
    path.symlink_to(path.replace(run.with_name(f"outside-{path.name}")))


def _another_version(path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pq.read_table(path).replace_schema_metadata({"format_version": "99"}), path)
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 99}))


def _table(change: Callable[[pa.Table], pa.Table]) -> Damage:
    return lambda path: pq.write_table(change(pq.read_table(path)), path)


def _other_records(path: Path) -> None:
    """Those of another file of the folder, or, where there is none, some of its own are not there."""
    others = [other for other in sorted(path.parent.iterdir()) if other != path]
    table = pq.read_table(others[0]) if others else pq.read_table(path).slice(1)
    pq.write_table(table, path)


def _lines(change: Callable[[list[str]], list[str]]) -> Damage:
    return lambda path: path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


BIG = "of a size that cannot be"
NO_FILES = ("a link that leads out", "a named pipe", "a socket", "without permission")
ANY: dict[str, Damage] = {
    "cut in half": _bytes(lambda data: data[: len(data) // 2]),
    "torn at its end": _bytes(lambda data: data[:-3]),
    "empty": _instead(b""),
    "missing": Path.unlink,
    "a picture": _instead(JPEG),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link to itself": _linked,
    "a link that leads out": _led_out,
    "a named pipe": _instead_of_it(stat.S_IFIFO),
    "a socket": _instead_of_it(stat.S_IFSOCK),
    "without permission": lambda path: path.chmod(0),
    BIG: lambda path: (path.write_bytes(b""), os.truncate(path, 1 << 40)),
    "zeros in its midst": _bytes(lambda data: data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :]),
    "bits turned": _bytes(_flipped),
    "lines of another format": _instead(STRANGE * 3),
    "an object of another format": _instead(
        '{"pairs": "x", "partitions": [7], "scenario": [1], "steps": {}, "files": 1}'
    ),
    "a list": _instead('[1, [2], "three"]'),
    "nested beyond measure": _instead(b"[" * 100_000),
}
JSON: dict[str, Damage] = {"of another version": _another_version}
LINES: dict[str, Damage] = {
    "without its first line": _lines(lambda lines: lines[1:]),
    "without its last line": _lines(lambda lines: lines[:-1]),
    "every line twice": _lines(lambda lines: lines * 2),
}
TABLE: dict[str, Damage] = {
    "of another version": _another_version,
    "with other columns": _table(lambda table: pa.table({"name": ["a"], "x": [1.5]})),
    "with other types": _table(lambda t: pa.table({name: pa.array(["x"] * len(t)) for name in t.column_names})),
    "with nothing in its columns": _table(lambda t: pa.table({f.name: pa.nulls(len(t), f.type) for f in t.schema})),
    "every row twice": _table(lambda table: pa.concat_tables([table, table])),
}
RECORDS: dict[str, Damage] = {
    "beside a copy of itself": lambda path: shutil.copy(path, path.with_name(f"copy of {path.name}")),
    "with another one's records": _other_records,
}


@contextmanager
def as_any_user() -> Iterator[None]:
    """Permissions count in this thread, if it is root's, too: without CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    libc = ctypes.CDLL(None)
    of_this_thread = (ctypes.c_uint32 * 2)(0x20080522, 0)
    before, now = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(of_this_thread, before) == libc.capget(of_this_thread, now) == 0
    now[0] &= ~0b110
    assert libc.capset(of_this_thread, now) == 0
    try:
        yield
    finally:
        assert libc.capset(of_this_thread, before) == 0


def damages(name: str) -> Iterator[tuple[str, Damage]]:
    """What can become of a file, by what it is then."""
    yield from {**ANY, **{".json": JSON, ".jsonl": LINES, ".parquet": TABLE}[Path(name).suffix]}.items()
    yield from RECORDS.items() if retelling.is_records(name) else ()
