"""`launch local FILE [-- trainer args]`: every replica of a job file on this machine, as Vertex AI would run it.

In the order in which things happen: launch/spec reads, plan says who runs what, environment and rules what Vertex AI
would give and do, processes or containers start replicas, supervisor sees the job through, stream shows it.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from launch.arguments import whole

if TYPE_CHECKING:
    from launch.local.supervisor import Outcome

TRAINER_ARGS = True  # what comes after `--` is for the trainer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `launch local`."""
    from launch.local.preempt import preemption

    parser.add_argument("file", metavar="FILE", help="a job file such as configs/multi_worker.yaml")
    parser.add_argument(
        "--runner",
        choices=("process", "docker"),
        default="process",
        help="processes of the project's environment, or containers",
    )
    parser.add_argument("--image", default="", help="with --runner=docker: this image instead of the file's")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable's value")
    parser.add_argument("--output", type=Path, help="instead of baseOutputDirectory; default jobs/NAME of the file")
    parser.add_argument(
        "--preempt",
        action="append",
        default=[],
        type=preemption,
        metavar="REPLICA@WHEN",
        help="take a replica away: worker:1@20s, chief@500steps; may be given again",
    )
    parser.add_argument(
        "--restarts",
        type=whole(0),
        help="of a replica, and of the job; default 5 and 3 as in the cloud, fewer where it fails twice the same way",
    )


def run(options: argparse.Namespace) -> int:
    """Rehearse the job; 0 where it succeeds, 1 where it fails, 130 where a person stopped it."""
    from concurrent.futures import ThreadPoolExecutor

    from launch import project, rehearsed, spec
    from launch.console import console
    from launch.local import lock, meanwhile, signals
    from launch.local.rehearsal import Rehearsal
    from launch.local.stream import Stream
    from launch.local.supervisor import LAUNCHER
    from launch.spec import shape

    file = spec.read(options.file, project.variables(options.file, project.overrides(options.set)))
    shape.check(file)
    stem = Path(file.file).stem
    # Not the study's folder: its first trial is another one.
    output = (options.output or Path("jobs") / (f"{stem}-trial" if file.kind == "tuning" else stem)).resolve()
    extra, trial = list(options.trainer_args), ""
    notes = []
    if file.kind == "tuning":
        from launch.study import choices, space

        trial, output = "1", output / "1"
        extra = [*choices.flags(space.read(file.study), choices.middle(file.study)), *extra]
        notes.append("a tuning job: one trial of it, in the middle of every range; `launch tune` runs the study")
    rehearsal = Rehearsal(
        spec=file.job,
        output=output,
        extra_args=extra,
        trial=trial,
        runner=options.runner,
        image=options.image,
        preemptions=options.preempt,
        restarts=options.restarts,
    )
    asked = ThreadPoolExecutor(1)
    begun = asked.submit(rehearsed.state)  # git takes its time, the replicas needn't wait for it
    everyone = [replica.name for replica in rehearsal.replicas()]
    held = lock.hold(output)
    stream = Stream(console(), everyone, output / "replicas")
    try:
        job = rehearsal.job(stream.show)
        for note in (*notes, *rehearsal.notes()):
            stream.show(LAUNCHER, note)
        with meanwhile.checked(file.file, stream.show), signals.calling(job.stop):
            outcome = job.run()
    finally:
        stream.close()
        held.close()
        asked.shutdown(wait=False)
    _report(outcome, output)
    if outcome.code == 0:
        rehearsed.remember(file.file, *begun.result())
    return outcome.code


def _report(outcome: "Outcome", output: Path) -> None:
    if outcome.code == 1:
        print(f"The job failed: {outcome.reason}.", file=sys.stderr)
        print(f"Each replica's lines are in {output / 'replicas'}/", file=sys.stderr)
        if outcome.failed:
            diagnose(output / "replicas" / f"{outcome.failed.replace(':', '-')}.log")
    elif outcome.code == 0:
        print(f"The job succeeded; what it wrote is in {output}/")


def diagnose(log: Path) -> None:
    """Say why it failed, as `launch diagnose LOG` does; the exit code stays the job's."""
    import importlib

    from launch.__main__ import VERBS

    if "diagnose" in VERBS and log.exists():
        module = importlib.import_module(VERBS["diagnose"][0])
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        module.run(parser.parse_args([str(log)]))
