"""The trainer's flags in job files, asked of the trainer itself: `python -m trainer.settings --check`.

launch/ imports nothing of trainer/, so a subprocess answers for all files at once; it needs no TensorFlow.
The parameters of a study are flags too (tried.py).
"""

import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from launch import project, spec
from launch.spec import dig, strategy
from launch.spec.document import EnoughError, Path, show
from launch.validate import tried

HANG_S = 60  # the answer takes about 0.3 s; this only keeps a broken model.py from holding the desk
MAX_ARGS = 1000  # the trainer has some 50 flags
MAX_TRIED = 2000  # values of a study; the API takes 1000 of one parameter


@dataclasses.dataclass(frozen=True)
class _Question:
    job: spec.JobFile
    args: list[str]
    replicas: int | None
    places: list[Path]  # where each argument stands
    fallback: Path  # where a problem is noted that belongs to no argument
    only_from: int = 0  # problems of the arguments before this one are told by another question


class Asked:
    """The answer under way; collect() waits for it and notes the findings."""

    def __init__(self, jobs: Sequence[spec.JobFile]):
        self.jobs = jobs
        self.questions = [question for job in jobs for question in _questions(job)]
        asked = [{"args": one.args, "replicas": one.replicas} for one in self.questions]
        self.check = _start("--check", json.dumps(asked)) if asked else None
        self.schema = _start("--schema", "") if any(job.kind == "tuning" for job in jobs) else None

    def collect(self) -> None:
        """Note what the trainer says of every file."""
        if self.check is not None:
            answers, broken = _finish(self.check)
            for place, question in enumerate(self.questions):
                with contextlib.suppress(EnoughError):
                    if broken or not isinstance(answers, list) or len(answers) != len(self.questions):
                        _note_broken(question, broken)
                    else:
                        _note(question, answers[place])
        if self.schema is not None:
            described, _ = _finish(self.schema)
            known = {flag["name"][2:]: flag for flag in (described or {}).get("flags", [])}
            for job in self.jobs:
                if job.kind != "tuning":
                    continue
                with contextlib.suppress(EnoughError):
                    _check_metric(job, str(known.get("hypertune_metric", {}).get("default", "val_loss")))


def ask(jobs: Sequence[spec.JobFile]) -> Asked:
    """Start asking the trainer; the findings come with `.collect()`."""
    return Asked(jobs)


def _start(mode: str, text: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "trainer.settings", mode]
    process = subprocess.Popen(
        command, cwd=project.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with contextlib.suppress(BrokenPipeError):  # it ended before it read: _finish says why
        process.stdin.write(text)
        process.stdin.close()
    process.stdin = None
    return process


def _finish(process: subprocess.Popen) -> tuple[Any, str]:
    """(answer, what went wrong)."""
    try:
        output, said = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, f"no answer within {HANG_S} s"
    if process.returncode:
        return None, (said.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    try:
        return json.loads(output), ""
    except ValueError:
        return None, "an answer that isn't JSON"


def _questions(job: spec.JobFile) -> Iterator[_Question]:
    replicas = strategy.replicas_in_sync(job)
    study = list(tried.flags(job))
    if len(study) > MAX_TRIED:
        came = f"{len(study)} values in a study"
        _note_too_many(job, ("studySpec", "parameters"), came, f"at most {MAX_TRIED}, so that each can be tried")
        study = study[:MAX_TRIED]
    for pool in job.pools:
        if not pool.runs_trainer:
            continue
        entries = dig(pool.container or pool.package, "args", kind=list, default=[])
        texts = [(place, arg) for place, arg in enumerate(entries) if isinstance(arg, str)]
        if len(texts) > MAX_ARGS:
            _note_too_many(job, pool.args_path, f"{len(texts)} arguments", f"at most {MAX_ARGS}")
            texts = texts[:MAX_ARGS]
        base = [arg for _, arg in texts]
        places = [(*pool.args_path, place) for place, _ in texts]
        yield _Question(job, base, replicas, places, pool.args_path)
        for path, flag in study if pool.index == 0 else ():
            yield _Question(job, [*base, flag], replicas, [*places, path], path, only_from=len(base))


def _note(question: _Question, problems: list[dict]) -> None:
    for problem in problems:
        index = problem.get("arg_index")
        if question.only_from and (index is None or index < question.only_from):
            continue
        path = question.places[index] if index is not None and index < len(question.places) else question.fallback
        came = question.args[index] if index is not None and index < len(question.args) else problem.get("flag", "")
        shape = f" (this file has {question.replicas} replicas)" if problem.get("flag") == "--batch_size" else ""
        question.job.document.find(
            path, f"{show(path)}: {came}", f"what the trainer takes: {problem['message']}{shape}", _fix(problem)
        )


def _note_too_many(job: spec.JobFile, path: Path, came: str, expected: str) -> None:
    with contextlib.suppress(EnoughError):
        job.document.find(path, came, expected, key=True)


def _fix(problem: dict) -> str:
    if "not a flag" in problem["message"]:
        return "`python -m trainer.task --help` lists the flags; a model's own are in trainer/model.py"
    return ""


def _note_broken(question: _Question, broken: str) -> None:
    came = f"flags that can't be checked: {broken or 'the trainer gave another answer than was asked for'}"
    fix = "run `python -m trainer.settings --schema`; it names what is wrong in trainer/model.py"
    question.job.document.find(question.fallback, came, "a trainer that can say its flags", fix)


def _check_metric(job: spec.JobFile, default: str) -> None:
    """A metricId that no trial reports makes every trial infeasible, after it was paid for."""
    pools = job.pools
    if not pools or not pools[0].runs_trainer:
        return
    reported = pools[0].flags.get("hypertune_metric") or default
    for place, metric in enumerate(dig(job.study, "metrics", kind=list, default=[])):
        name = dig(metric, "metricId", kind=str, default="")
        if name and name != reported:
            path = ("studySpec", "metrics", place, "metricId")
            fix = f"add --hypertune_metric={name} to args, or write metricId: {reported}"
            job.document.find(path, f"metricId: {name}", f"{reported}, the one metric that the trainer reports", fix)
