"""Every kind of finding has a rule, a history that shows it, a near miss that does not, and a planted bug."""

from __future__ import annotations

from dataclasses import asdict

from claims import claims, markdown


def test_no_cell_of_the_table_of_claims_is_empty() -> None:
    table = claims()
    print(markdown(table))
    assert not [(kind, column) for kind, claim in table.items() for column, names in asdict(claim).items() if not names]
