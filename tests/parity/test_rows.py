"""Every row of `make parity` holds."""

import pytest

from tests.parity import rows


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in rows.ROWS]
)
def test_a_row_holds(row):
    holds, measured = row.holds(rows.result(row.first), rows.result(row.second))
    assert holds, measured
