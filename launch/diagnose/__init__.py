"""`launch diagnose`: what did fail, said from the log.

    python -m launch diagnose job.log            a file: plain, JSON lines, gzip
    python -m launch diagnose 1234567890         a job on Vertex AI: its id, full name, or the name from submit
    some command 2>&1 | python -m launch diagnose

Exit code 0: the log was read, whatever it says; 2: there is no log.
"""

import argparse
import json
import sys

from launch.errors import LaunchError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    parser.add_argument(
        "log", nargs="?", default="-", metavar="FILE|JOB|-", help="a log file, a job's id or full name, or - for a pipe"
    )
    parser.add_argument("--json", action="store_true", help='print {"causes": [...]}, most likely first')


def run(options: argparse.Namespace) -> int:
    """Reads the log and prints what it shows."""
    from launch import project

    if options.log == "-" and sys.stdin.isatty():
        raise LaunchError("diagnose reads a FILE, a JOB or a pipe; none came. For example: make diagnose FILE=job.log")
    known = project.settings()
    report = read(options.log)
    if options.json:
        print(json.dumps({"causes": [finding.as_dict() for finding in report.findings]}, indent=2, ensure_ascii=False))
    else:
        from launch.diagnose import show

        show.show(report, "standard input" if options.log == "-" else options.log, known)
    return 0


def read(log: str):
    """The report of a file, a job or, for "-", standard input. Raises LaunchError where there is no log."""
    import pathlib

    from launch.diagnose import fetch, report, source

    if log != "-" and not pathlib.Path(log).exists() and fetch.is_job(log):
        with fetch.fetch(log) as stream:
            return report.read(stream)
    try:
        with source.opened(log, sys.stdin.buffer) as stream:
            return report.read(stream)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LaunchError(
            f"{log}: {reason}. Expected: a log file, a job's id (digits) or its full name, or -"
        ) from None
