"""Tests that let a witness see nothing shorten its wait; they know the bound of every witness."""

from __future__ import annotations

import importlib
from pathlib import Path

from cluster.worlds import BOUNDS

import fencepost.faults
import fencepost.witnesses


def test_every_bound_exists() -> None:
    for bound in BOUNDS:
        module, _, name = bound.rpartition(".")
        assert hasattr(importlib.import_module(f"fencepost.{module}"), name), bound


def test_every_proof_has_its_bound_shortened() -> None:
    for package in (fencepost.faults, fencepost.witnesses):
        for path in Path(str(package.__file__)).parent.glob("*.py"):
            if "\nPROOF_S = " in path.read_text():
                assert f"{package.__name__.removeprefix('fencepost.')}.{path.stem}.PROOF_S" in BOUNDS
