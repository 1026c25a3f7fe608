"""`launch tune FILE`: a HyperparameterTuningJob on this machine, trial by trial."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from launch.arguments import whole

if TYPE_CHECKING:
    from launch.spec import JobFile
    from launch.study.runner import Study
    from launch.study.store import Store
    from launch.study.trial import Options

TRAINER_ARGS = True  # what comes after `--` joins every trial's args


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `launch tune`."""
    parser.add_argument("file", metavar="FILE", help="a HyperparameterTuningJob file such as configs/tune.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable's value")
    parser.add_argument("--output", type=Path, help="the study's folder; default jobs/NAME of the file")
    parser.add_argument("--fresh", action="store_true", help="set the study that is there aside and begin anew")
    parser.add_argument("--trials", type=whole(1), metavar="N", help="instead of maxTrialCount")
    parser.add_argument("--parallel", type=whole(1), metavar="N", help="instead of parallelTrialCount")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the search")
    parser.add_argument(
        "--runner", choices=("process", "docker"), default="process", help="as for `launch local`; default process"
    )
    parser.add_argument("--image", default="", help="with --runner=docker: this image instead of the file's")


def run(options: argparse.Namespace) -> int:
    """Run the study; 0 where it has a best trial, 1 where it failed, 130 where a person stopped it."""
    from launch import project, spec
    from launch.console import console, stderr
    from launch.errors import LaunchError
    from launch.local import signals
    from launch.spec import shape
    from launch.study import devices, store
    from launch.study.runner import Study
    from launch.study.table import Show

    file = spec.read(options.file, project.variables(options.file, project.overrides(options.set)))
    if file.kind != "tuning" or not (file.data.get("studySpec") and file.data.get("trialJobSpec")):
        raise LaunchError(
            f"{file.file} is no tuning job: studySpec and trialJobSpec were expected; see configs/tune.yaml"
        )
    shape.check(file)
    folder = (options.output or Path("jobs") / Path(file.file).stem).resolve()
    if options.fresh and (aside := store.set_aside(folder)):
        stderr().print(f"The study that was there is in {aside}/ now", markup=False)
    keep = store.open_store(folder, _plain(file.data), str(Path(file.file).resolve()), options.seed)
    try:
        how, notes = _options(file, keep, options)
        shares = devices.Shares(devices.gpus(how.folder), _gpus_each(file))
        if shares.trials and shares.trials < how.parallel:
            notes.append(f"{shares.trials} trials at a time, not {how.parallel}: each has {shares.each} GPU of its own")
            how = how.__class__(**{**vars(how), "parallel": shares.trials})
        for note in notes:
            stderr().print(note, markup=False)
        show = Show(console())
        show.seen(keep)
        study = Study(keep, how, shares, show)
        with show, signals.calling(study.stop):
            study.run()
        return _report(study)
    finally:
        keep.close()


def _plain(data: dict) -> dict:
    """The file's data as JSON has it."""
    return json.loads(json.dumps(data))


def _options(file: "JobFile", keep: "Store", options: argparse.Namespace) -> tuple["Options", list[str]]:
    """How the study runs here, and what is to be said about it. Raises LaunchError."""
    from launch.study import search, space
    from launch.study.trial import Options

    job, notes = keep.job, []
    trials = options.trials or _count(job, "maxTrialCount", 1)
    parallel = options.parallel or _count(job, "parallelTrialCount", 1)
    if search.algorithm(file.study) == "GRID_SEARCH":
        total = search.queue_grid(keep.study, space.read(file.study), trials)
        if total != trials:
            notes.append(f"the grid has {total} combinations, maxTrialCount is {trials}")
        trials = min(trials, total)
    for key in ("convexAutomatedStoppingSpec", "studyStoppingConfig"):
        if key in file.study:
            notes.append(f"studySpec.{key} has no counterpart here: every trial runs to its end")
    if done := len(keep.trials()):
        notes.append(
            f"going on with the study in {keep.folder}/, which has {done} of {trials} trials (--fresh begins anew)"
        )
    how = Options(
        trials=trials,
        parallel=max(1, parallel),
        max_failed=_count(job, "maxFailedTrialCount", 0),
        runner=options.runner,
        image=options.image,
        extra_args=options.trainer_args,
    )
    return how, notes


def _count(job: dict, key: str, default: int) -> int:
    """A count, which JSON may write as text."""
    from launch.errors import LaunchError

    value = job.get(key, default)
    if isinstance(value, bool) or not str(value).isdigit():
        raise LaunchError(f"{key} is {value!r}; a whole number was expected")
    return int(value)


def _gpus_each(file: "JobFile") -> int:
    """How many GPUs one trial asks for, over all its replicas."""
    return sum(pool.replicas * pool.devices for pool in file.pools if pool.architecture == "gpu")


def _report(study: "Study") -> int:
    """The end of it, in words."""
    from launch.console import console, stderr
    from launch.local import diagnose
    from launch.study import choices, plots, store

    keep, best = study.store, study.store.best()
    keep.write_json()
    if study.failed_because:
        stderr().print(f"The study failed: {study.failed_because}", markup=False)
        stderr().print(f"What each trial printed is in {keep.folder}/TRIAL/replicas/", markup=False)
        failed = [one for one in keep.trials() if store.state(one) == store.FAILED]
        if failed:
            diagnose(keep.folder / str(failed[-1].number + 1) / "replicas" / "chief.log")
        return 1
    if best is not None:
        page = plots.write(keep)
        flags = " ".join(choices.flags(study.parameters, best.user_attrs["parameters"]))
        out = console()
        out.print(
            f"\nBest of {len(keep.trials())} trials: {best.number + 1}, {keep.metric} {best.value:.5g}", markup=False
        )
        out.print(f'  make train ARGS="{flags}"', markup=False)
        for name, share in plots.importances(keep).items():
            out.print(f"  {name:<24} {'#' * round(30 * share):<30} {share:.0%} of what mattered", markup=False)
        out.print(f"History and importance: {page}", markup=False)
        out.print(f"The next study: python -m launch refine {keep.folder}", markup=False)
    if study.reason:
        stderr().print(f"{study.reason}; the same command goes on from here", markup=False)
        return 130
    if best is None:
        reasons = {store.end(one).get("reason", "") for one in keep.trials()}
        stderr().print(f"No trial has a result: {'; '.join(sorted(reasons))}", markup=False)
        return 1
    return 0
