"""Runs the trials of a study, several at a time, each a job of launch/local in a thread of its own."""

import queue
import threading
import time
from collections.abc import Callable

import optuna

from launch.local import environment
from launch.local.stream import Stream
from launch.local.supervisor import Job, Outcome
from launch.study import choices, measurements, space, stopping, store
from launch.study.devices import Shares
from launch.study.store import Store
from launch.study.trial import Options, Running, curve_of, points

LOOK_EVERY_S = 0.5
FIRST_FAILURES = 3  # with maxFailedTrialCount 0: as many failures before any success end the study


class Study:
    """A study in progress. All of optuna is used by the thread that calls `run`, and by no other."""

    def __init__(self, keep: Store, options: Options, shares: Shares, on_change: Callable[["Study"], None]):
        """`on_change(self)` is called after every change and every look at the measurements."""
        self.store, self.options, self._shares, self._on_change = keep, options, shares, on_change
        self.spec = keep.job["studySpec"]
        self.parameters = space.read(self.spec)
        self.running: dict[int, Running] = {}
        self.reason = ""  # why no more trials are started
        self.failed_because = ""
        self._rule, self._by_time = stopping.rule(self.spec)
        self._events: queue.SimpleQueue[tuple] = queue.SimpleQueue()
        self._curves = {one.number + 1: curve_of(one) for one in keep.trials() if store.state(one) == store.SUCCEEDED}
        self._interrupted = [one for one in keep.trials() if one.state == optuna.trial.TrialState.RUNNING]

    def run(self) -> None:
        """Run trials until there are as many as asked for, or `stop` was called. Raises LaunchError."""
        try:
            while True:
                while not self.reason and len(self.running) < self.options.parallel and self._more():
                    self._start()
                if not self.running:
                    return
                self._on_change(self)
                try:
                    event = self._events.get(timeout=LOOK_EVERY_S)
                except queue.Empty:
                    self._look()
                    continue
                if event[0] == "stop":
                    self._stop(event[1])
                else:
                    self._ended(*event[1:])
        finally:
            for one in self.running.values():
                one.job.kill()
            while self.running:  # each trial cleans up after itself
                event = self._events.get()
                if event[0] == "ended":
                    self.running.pop(event[1])
            self._on_change(self)

    def stop(self, reason: str) -> None:
        """Start no more, and stop what runs: it goes on where it was next time. Safe in a signal handler."""
        self._events.put(("stop", reason))

    def running_now(self) -> dict[int, tuple[float | None, float]]:
        """The last value and the seconds so far of every trial that runs."""
        now = time.monotonic()
        return {
            number: (one.curve[-1].value if one.curve else None, now - one.begun)
            for number, one in self.running.items()
        }

    def _more(self) -> bool:
        return bool(self._interrupted) or len(self.store.trials()) < self.options.trials

    def _stop(self, reason: str) -> None:
        again = bool(self.reason)
        self.reason = reason
        for one in self.running.values():
            one.job.kill() if again else one.job.stop(reason)

    def _start(self) -> None:
        """One more trial: first those that an earlier run left unfinished, in their own folders."""
        if self._interrupted:
            frozen = self._interrupted.pop(0)
            # optuna shows a trial's own id nowhere else, and takes it here.
            trial = optuna.Trial(self.store.study, frozen._trial_id)
            known, values = curve_of(frozen), frozen.user_attrs.get("parameters")
        else:
            trial = self.store.study.ask()
            known, values = [], None
        if values is None:
            values = choices.propose(trial, self.parameters)
            trial.set_user_attr("parameters", values)
        number = trial.number + 1
        gpus = self._shares.take()
        flags = choices.flags(self.parameters, values)
        rehearsal = self.options.rehearsal(self.store, number, flags, gpus)
        stream = Stream(None, [one.name for one in rehearsal.replicas()], rehearsal.output / "replicas")
        job = rehearsal.job(stream.show)
        metric_file = environment.metric_file(rehearsal.output)
        reader = measurements.Reader(metric_file, self.store.metric, time.time(), known)
        self.running[number] = Running(trial, values, job, reader, gpus, time.monotonic(), known)
        threading.Thread(target=self._work, args=(number, job, stream), daemon=True).start()

    def _work(self, number: int, job: Job, stream: Stream) -> None:
        """In the trial's own thread."""
        try:
            outcome: Outcome | Exception = job.run()
        except Exception as error:
            outcome = error
        stream.close()
        self._events.put(("ended", number, outcome))

    def _look(self) -> None:
        """Take in what the running trials have reported, and stop those that fall behind."""
        for number, one in self.running.items():
            one.curve = one.reader.poll()
            if one.stopped or self.reason:
                continue
            ended = [curve for other, curve in self._curves.items() if other != number]
            why = stopping.should_stop(self._rule, one.curve, ended, self.store.maximize, self._by_time)
            if why:
                one.stopped = why
                one.job.stop(f"stopped early: {why}")

    def _ended(self, number: int, outcome: Outcome | Exception) -> None:
        one = self.running.pop(number)
        self._shares.give_back(one.gpus)
        if isinstance(outcome, Exception):
            raise outcome
        one.curve = one.reader.poll()
        if outcome.stopped and not one.stopped:
            store.note_end(one.trial, curve=points(one.curve))
            return  # it stays RUNNING in the database, and goes on when the study does
        last = measurements.final(
            one.curve, self.spec.get("measurementSelectionType", ""), maximize=self.store.maximize
        )
        if one.tell(self.store, outcome, last) == store.SUCCEEDED:
            self._curves[number] = one.curve
        self.store.write_json()
        self._count_failures()

    def _count_failures(self) -> None:
        """maxFailedTrialCount; where it is 0 the service decides, and so do we."""
        trials = self.store.trials()
        failed = [one for one in trials if store.state(one) in (store.FAILED, store.INFEASIBLE)]
        limit = self.options.max_failed
        if not limit and not any(one.value is not None for one in trials):
            limit = FIRST_FAILURES
        if limit and len(failed) >= limit and not self.failed_because:
            last = failed[-1]
            self.failed_because = (
                f"{len(failed)} trials failed; the last, {last.number + 1}: {store.end(last).get('reason', '')}"
            )
            self._stop(self.failed_because)
