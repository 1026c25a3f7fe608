"""Every row of `make parity` holds; the quick ones with fewer steps."""

from dataclasses import replace

import pytest

from tests.parity import rows


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in rows.ROWS]
)
def test_a_row_holds(row):
    first, second = (run if row.slow else replace(run, steps=30) for run in (row.first, row.second))
    holds, measured = row.holds(rows.result(first), rows.result(second))
    assert holds, measured
