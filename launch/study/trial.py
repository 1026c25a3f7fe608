"""One trial of a study: its job here, what it reports, and how it is judged at its end."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import optuna

from launch.local.rehearsal import Rehearsal
from launch.local.supervisor import Job, Outcome
from launch.study import measurements, space, store
from launch.study.store import Store


@dataclass(frozen=True)
class Options:
    """How a study is run here."""

    trials: int
    parallel: int
    max_failed: int = 0
    runner: str = "process"
    image: str = ""
    extra_args: Sequence[str] = ()
    folder: Path = field(default_factory=Path.cwd)

    def rehearsal(self, keep: Store, number: int, flags: Sequence[str], gpus: Sequence[str]) -> Rehearsal:
        """The job of trial `number`, in the folder of its number; `flags` carry its parameters."""
        return Rehearsal(
            spec=keep.job["trialJobSpec"],
            output=keep.folder / str(number),
            extra_args=[*flags, *self.extra_args],
            trial=str(number),
            runner=self.runner,
            image=self.image,
            gpus=gpus,
            folder=self.folder,
        )


@dataclass
class Running:
    """A trial that runs."""

    trial: optuna.Trial
    values: Mapping[str, space.Value]
    job: Job
    reader: measurements.Reader
    gpus: list[str]
    begun: float
    curve: list[measurements.Measurement] = field(default_factory=list)
    stopped: str = ""  # why it was stopped early

    def tell(self, keep: Store, outcome: Outcome, last: measurements.Measurement | None) -> str:
        """Keep how it ended, the state (which is returned) and why; attributes first: a finished trial takes none."""
        early = self.stopped if outcome.code else ""  # it may have ended by itself at the same moment
        reason = early
        if outcome.code and not early:
            state, reason = store.FAILED, ": ".join(filter(None, (outcome.reason, outcome.said[:300])))
        elif last is None:
            others = f", only {', '.join(sorted(self.reader.others))}" if self.reader.others else ""
            reason = f"it reported no {keep.metric}{others}: see --hypertune_metric"
            state = store.INFEASIBLE
        else:
            state = store.STOPPED if early else store.SUCCEEDED
        end = {"reason": reason, "elapsed_s": round(time.monotonic() - self.begun, 1), "curve": points(self.curve)}
        store.note_end(self.trial, state=state, step=last.step if last else 0, **end)
        if state in (store.FAILED, store.INFEASIBLE):
            keep.study.tell(self.trial, state=optuna.trial.TrialState.FAIL)
            return state
        keep.study.tell(self.trial, last.value)
        return state


def points(curve: Sequence[measurements.Measurement]) -> list[tuple[int, float, float]]:
    """The measurements as the database keeps them: (step, elapsed_s, value)."""
    return [(one.step, one.elapsed_s, one.value) for one in curve]


def curve_of(trial: optuna.trial.FrozenTrial) -> list[measurements.Measurement]:
    """What `points` made of a trial's measurements, back again."""
    return [measurements.Measurement(*point) for point in store.end(trial).get("curve", ())]
