"""`python -m trainer.doctor --for=cpu|gpu|tpu [--json] [--quick]`: exit 1 where a check failed."""

import argparse
import sys

from trainer.doctor import KINDS, check, kind_here
from trainer.doctor.result import as_json, as_table, failed


def main(argv: list[str] | None = None) -> int:
    """Run the checks, print them, and return 0 (fit), 1 (not fit) or 2 (command line, from argparse)."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.doctor", description="Is this environment right for its hardware?"
    )
    parser.add_argument("--for", dest="kind", choices=KINDS, help="the hardware; by default what is at hand")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument("--quick", action="store_true", help="only what the trainer checks at its start, under 0.2 s")
    options = parser.parse_args(argv)
    kind = options.kind or kind_here()
    checks = check(kind, deep=not options.quick)
    print(as_json(kind, checks) if options.json else as_table(kind, checks))
    return int(failed(checks))


if __name__ == "__main__":
    sys.exit(main())
