"""`launch list`: the newest jobs and studies of the project's region."""

import argparse
import json

from launch import vertex
from launch.arguments import whole
from launch.vertex.logs import parse_time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `list`."""
    parser.add_argument("--limit", type=whole(1), default=20, help="how many [20]")
    parser.add_argument("--json", action="store_true", help="the jobs as the API has them")


def run(options: argparse.Namespace) -> int:
    """Print the newest jobs of both kinds, newest first."""
    where = vertex.place()
    limit = options.limit
    found = [(kind, entry) for kind in ("custom", "tuning") for entry in vertex.jobs(kind, where, limit)]
    found.sort(key=lambda pair: pair[1].get("createTime", ""), reverse=True)
    if options.json:
        print(json.dumps([entry for _, entry in found[:limit]], indent=2))
        return 0
    if not found:
        print(f"no jobs in {where['PROJECT']}, {where['REGION']}")
        return 0
    from launch.console import console, table

    console().print(table(("job", "kind", "state", "created", "took", "id"), [_row(*pair) for pair in found[:limit]]))
    return 0


def _row(kind: str, entry: dict) -> tuple[str, ...]:
    created = parse_time(entry.get("createTime", ""))
    number = entry.get("name", "").rpartition("/")[2]
    when = f"{created.astimezone():%Y-%m-%d %H:%M}" if created else "-"
    return entry.get("displayName", "-"), kind, vertex.state(entry), when, _took(entry), number


def _took(entry: dict) -> str:
    start, end = parse_time(entry.get("startTime", "")), parse_time(entry.get("endTime", ""))
    if not start or not end:
        return "-"
    minutes, seconds = divmod(int((end - start).total_seconds()), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
