"""`launch cancel [JOB]`: ask for a job's end."""

import argparse

from launch import vertex


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `cancel`."""
    parser.add_argument("job", nargs="?", help="a job's name, id or display name; without one, the last submitted")


def run(options: argparse.Namespace) -> int:
    """Cancel a job; 0 when it was asked for, also of a job that has ended already."""
    job = vertex.find(options.job)
    state = vertex.state(vertex.describe(job))
    if state in vertex.ENDED:
        print(f"{job.name} has ended already: {state}")
        return 0
    vertex.cancel(job)
    print(f"cancelling {job.name}; its replicas get SIGTERM and save what they have")
    print(f"  watch    python -m launch watch {job.name}")
    return 0
