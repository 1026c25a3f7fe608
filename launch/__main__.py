"""`python -m launch VERB`: one verb a module, imported only when it is asked for."""

import argparse
import importlib
import sys

# verb -> (module, what it does); the module has add_arguments(parser) and run(options) -> exit code.
VERBS: dict[str, tuple[str, str]] = {}


def main(argv: list[str] | None = None) -> int:
    """Run one verb; the exit code is the verb's own, 2 where the command line can't be read."""
    argv = sys.argv[1:] if argv is None else argv
    verb = argv[0] if argv and argv[0] in VERBS else None
    parser = argparse.ArgumentParser(prog="python -m launch", description="Run, check and submit job files.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (module, summary) in VERBS.items():
        subparser = verbs.add_parser(name, help=summary, description=summary)
        if name == verb:
            importlib.import_module(module).add_arguments(subparser)
    options = parser.parse_args(argv)
    return importlib.import_module(VERBS[options.verb][0]).run(options)


if __name__ == "__main__":
    sys.exit(main())
