"""`make parity`: the table from real runs; 1 where a row doesn't hold."""

import sys

from tests.parity.rows import ROWS, result


def main() -> int:
    """Print a Markdown table, row by row as it is measured."""
    print("| compared | holds | measured |\n|---|---|---|", flush=True)
    failed = 0
    for row in ROWS:
        holds, measured = row.holds(result(row.first), result(row.second))
        failed += not holds
        print(f"| {row.name} | {'yes' if holds else '**no**'} | {measured} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
