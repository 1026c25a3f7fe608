"""A study as people see it: a live table on a terminal, a line for each trial elsewhere."""

from collections.abc import Mapping

import optuna
from rich.console import Console
from rich.live import Live
from rich.table import Table

from launch import console
from launch.study import store
from launch.study.runner import Study

ROWS = 15  # of a live table; the best one is always among them
STYLES = {store.SUCCEEDED: "", store.STOPPED: "dim", store.FAILED: "red", store.INFEASIBLE: "red"}


class Show:
    """Keeps what is shown up to date; use it as a context, and as the `on_change` of a Study."""

    def __init__(self, to: Console):
        self._console = to
        self._live = Live(console=to, refresh_per_second=4) if to.is_terminal else None
        self._told: set[int] = set()

    def __enter__(self) -> "Show":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, study: Study) -> None:
        """The study has changed."""
        if self._live:
            self._live.update(table(study.store, study.running_now(), ROWS))
            return
        for trial in study.store.trials():
            if store.state(trial) != store.ACTIVE and trial.number not in self._told:
                self._told.add(trial.number)
                self._console.print(line(trial), markup=False)

    def seen(self, keep: store.Store) -> None:
        """Don't tell again what an earlier run of the study has told."""
        self._told |= {trial.number for trial in keep.trials() if store.state(trial) != store.ACTIVE}


def line(trial: optuna.trial.FrozenTrial) -> str:
    """One trial that has ended, in a line."""
    values = " ".join(f"{name}={text(value)}" for name, value in trial.user_attrs.get("parameters", {}).items())
    result = "" if trial.value is None else f"{trial.value:.5g}  "
    reason, seconds = store.end(trial).get("reason", ""), store.end(trial).get("elapsed_s", 0)
    return f"trial {trial.number + 1:>3}  {store.state(trial):<10} {result}{values}  {seconds:g} s" + (
        f"  ({reason})" if reason else ""
    )


def table(keep: store.Store, running: Mapping[int, tuple[float | None, float]], rows: int) -> Table:
    """The newest trials and the best; `running` has the last value and the seconds so far, by trial."""
    trials, best = keep.trials(), keep.best()
    shown = trials[-rows:]
    if best is not None and best.number not in [one.number for one in shown]:
        shown = [best, *shown[1:]]
    names = list(dict.fromkeys(name for one in shown for name in one.user_attrs.get("parameters", {})))
    result = console.table(["trial", "state", keep.metric, *names, "time"], [])
    for one in shown:
        number, values = one.number + 1, one.user_attrs.get("parameters", {})
        value, seconds = running.get(number, (one.value, store.end(one).get("elapsed_s", 0)))
        is_best = best is not None and one.number == best.number
        result.add_row(
            f"{number}{' *' if is_best else ''}",
            "RUNNING" if number in running else store.state(one),
            "" if value is None else f"{value:.5g}",
            *(text(values.get(name, "")) for name in names),
            f"{seconds:.0f} s",
            style="bold green" if is_best else STYLES.get(store.state(one), "cyan"),
        )
    return result


def text(value: object) -> str:
    """A parameter's value, short."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
