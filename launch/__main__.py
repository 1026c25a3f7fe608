"""`python -m launch VERB`: one verb a module, imported only when it is asked for."""

import argparse
import importlib
import os
import sys

from launch.errors import LaunchError

# verb -> (module, what it does), in the order of use; the module has add_arguments(parser) and
# run(options) -> exit code.
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
    try:
        return importlib.import_module(VERBS[options.verb][0]).run(options)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `launch list | head`: whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
