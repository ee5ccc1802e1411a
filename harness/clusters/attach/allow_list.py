"""A team's list of the clusters that its runs may use: the file ``fencepost-clusters.toml`` of its repository."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.clusters.names import PREFIX
from fencepost.errors import ScenarioError, refuse

FILE = "fencepost-clusters.toml"
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9._-]{2,78}[._-]")
_KEYS = ("prefix", "clusters")


@dataclass(frozen=True)
class AllowList:
    """The clusters of other owners that runs may use, and no others.

    Attributes:
        path: the file.
        clusters: a description of each cluster, by its id.
        prefix: begins the names of everything that runs create in these clusters.
    """

    path: Path
    clusters: Mapping[str, str]
    prefix: str = PREFIX

    @classmethod
    def find(cls, folder: Path) -> AllowList | None:
        """The list that counts in a folder: its own, or that of the nearest folder above; None: there is none.

        Raises:
            ScenarioError: the file cannot be read, or lists everything that is wrong in it.
        """
        at = folder.absolute()
        path = next((file for one in (at, *at.parents) if os.path.lexists(file := one / FILE)), None)
        return None if path is None else cls.read(path)

    @classmethod
    def read(cls, path: Path) -> AllowList:
        """The list in a file. Raises: see ``find``."""
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ScenarioError(f"the list of clusters in {path} cannot be read: {why}") from error
        refuse(ScenarioError(f"{path}: {why}") for why in _problems(found))
        return cls(path, found["clusters"], found.get("prefix", PREFIX))

    def refusal(self, cluster_id: str) -> str:
        """Why a run may not use a cluster; empty: it may."""
        if cluster_id in self.clusters:
            return ""
        known = ", ".join(f"{one} ({about})" if about else one for one, about in self.clusters.items()) or "none"
        return (
            f"the cluster has the id {cluster_id}, but {self.path} allows {known}. If runs may use this cluster, add "
            f'the line "{cluster_id}" = "..." below [clusters]'
        )


def _problems(found: Mapping[str, Any]) -> Iterator[str]:
    if unknown := [name for name in found if name not in _KEYS]:
        yield f"found {', '.join(unknown)}; use only {', '.join(_KEYS)}"
    clusters, prefix = found.get("clusters"), found.get("prefix", PREFIX)
    if not isinstance(clusters, dict) or not all(one and isinstance(about, str) for one, about in clusters.items()):
        yield 'the table [clusters] must have a line "ID" = "description" for each cluster that runs may use'
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        yield (
            f"prefix is {prefix!r}; it must have 4 to 80 letters, digits, '.', '_' or '-', begin with a letter, and "
            "end with '.', '_' or '-', so that no other names begin with it by chance"
        )
