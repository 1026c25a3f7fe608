"""Runs a job's replicas to the end that Vertex AI would give it: restarts, preemptions, the chief's last word."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from launch.local.events import Events
from launch.local.plan import PlanError, Replica
from launch.local.preempt import Preemption, progress
from launch.local.rules import Failure, Rules, decide, ended
from launch.local.runner import Handle, Runner

NOTICE_S = 15.0  # between SIGTERM and SIGKILL: what a Spot machine's programs get of its 30 s
DONE_NOTICE_S = 3.0  # the same once the chief is done, when there is nothing left to save
LAUNCHER = "launch"  # who speaks where no replica does


@dataclass(frozen=True)
class Outcome:
    """How a job ended. `code` is 0 where the chief exited 0, 130 where a person stopped it, else 1."""

    code: int
    reason: str
    failed: str = ""  # the replica that was the cause
    said: str = ""  # its last line

    @property
    def stopped(self) -> bool:
        """Ended because it was told to."""
        return self.code == 130


class Job:
    """One job. `run` blocks; `stop` and `kill` may be called from any thread or signal handler."""

    def __init__(
        self,
        replicas: Sequence[Replica],
        rules: Rules,
        runner: Runner,
        environment: Callable[[Replica, Mapping[str, str]], Mapping[str, str]],
        show: Callable[[str, str], None],
        preemptions: Sequence[Preemption] = (),
        notice_s: float = NOTICE_S,
    ):
        """`environment(replica, addresses)` gives a replica's variables; `show(name, line)` takes every line."""
        self._replicas, self._rules, self._runner = {one.name: one for one in replicas}, rules, runner
        self._environment, self._show, self._notice_s = environment, show, notice_s
        self._preemptions = list(preemptions)
        self._events = Events()
        self._live: dict[str, Handle] = {}
        self._addresses: Mapping[str, str] = {}
        self._outcome: Outcome | None = None  # set: the job is ending
        self._restarting = False  # set: all stop, then all start again
        self._taken: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._job_restarts = 0
        self._last_words: dict[str, str] = {}
        self._failed_words: dict[str, str] = {}

    def run(self) -> Outcome:
        """Start every replica and see the job through. Raises PlanError where it can't begin."""
        try:
            self._addresses = self._runner.open(list(self._replicas.values()))
            self._start_all()
            for one in self._preemptions:
                if one.after_s is not None:
                    self._events.after(one.after_s, lambda name=one.name: self._preempt(name))
            if self._rules.timeout_s:
                self._events.after(self._rules.timeout_s, self._time_out)
            while self._live:
                self._step()
            return self._outcome
        finally:
            for handle in self._live.values():
                handle.kill()
            self._runner.close()

    def stop(self, reason: str = "stopped by hand") -> None:
        """End the job gently: SIGTERM, SIGKILL for what is there when the notice is over. The second time: now."""
        self._events.put("stop", reason)

    def kill(self) -> None:
        """End it now."""
        self._events.put("kill")

    def _step(self) -> None:
        """Handle one event, or a timer that is due."""
        event = self._events.next()
        if event is None:
            return
        kind, *rest = event
        if kind == "line":
            self._line(*rest)
        elif kind == "exit":
            self._exited(*rest)
        elif kind == "stop" and not self._outcome:
            self._end(Outcome(130, rest[0]))
        else:
            self._outcome = self._outcome or Outcome(130, "killed by hand")
            self._kill_all()

    def _say(self, text: str) -> None:
        self._show(LAUNCHER, text)

    def _line(self, name: str, text: str) -> None:
        if text.strip():
            self._last_words[name] = text.strip()
        self._show(name, text)
        if name == "chief" and self._preemptions and (step := progress(text)) is not None:
            for one in [one for one in self._preemptions if one.step is not None and one.step <= step]:
                self._preemptions.remove(one)
                self._preempt(one.name)

    def _start_all(self) -> None:
        self._restarts.clear()
        for name in self._replicas:
            self._start(name)

    def _start(self, name: str) -> None:
        replica = self._replicas[name]
        self._last_words.pop(name, None)
        self._live[name] = self._runner.start(
            replica,
            self._environment(replica, self._addresses),
            lambda line: self._events.put("line", name, line),
            lambda code: self._events.put("exit", name, code),
        )

    def _exited(self, name: str, code: int) -> None:
        del self._live[name]
        taken = name in self._taken
        self._taken.discard(name)
        if self._outcome or self._restarting:
            if not self._live and self._restarting and not self._outcome:
                self._restarting = False
                self._start_all()
        elif taken:
            self._failed(Failure(name, code, preempted=True))
        elif code and (lost := self._being_taken()):  # its peers may hear of it, and end, before it does
            self._failed(Failure(lost, code, preempted=True))
        elif code:
            words = self._last_words.get(name, "")
            again = bool(words) and self._failed_words.get(name) == words
            self._failed_words[name] = words
            self._failed(Failure(name, code, again=again))
        elif self._replicas[name].pool == 0:
            others = f"; stopping {', '.join(self._live)}" if self._live else ""
            self._end(Outcome(0, "the chief is done"), f"the chief {ended(code)}, so the job is done{others}")
        else:
            self._say(f"{name} is done")

    def _being_taken(self) -> str | None:
        """The replica that is on its way out, where the whole job goes with it."""
        return next(iter(self._taken), None) if self._rules.spot or self._rules.restart_job else None

    def _failed(self, failure: Failure) -> None:
        name = failure.name
        action, sentence = decide(self._rules, failure, self._restarts.get(name, 0), self._job_restarts)
        if action == "fail":
            self._end(Outcome(1, sentence, failed=name, said=self._last_words.get(name, "")), sentence)
            return
        self._say(sentence)
        if action == "replica":
            self._restarts[name] = self._restarts.get(name, 0) + 1
            self._start(name)
            return
        self._job_restarts += 1
        self._restarting = True
        self._stop_all()
        if not self._live:
            self._restarting = False
            self._start_all()

    def _end(self, outcome: Outcome, sentence: str = "") -> None:
        if self._outcome:
            return
        self._outcome = outcome
        self._say(sentence or f"{outcome.reason}; stopping {', '.join(self._live)}")
        self._stop_all()

    def _stop_all(self) -> None:
        handles = list(self._live.values())
        for handle in handles:
            handle.terminate()
        done = self._outcome is not None and self._outcome.code == 0
        if handles:
            self._events.after(
                min(self._notice_s, DONE_NOTICE_S) if done else self._notice_s,
                lambda: [handle.kill() for handle in handles],
            )

    def _kill_all(self) -> None:
        for handle in self._live.values():
            handle.kill()

    def _preempt(self, name: str) -> None:
        """The machine goes: a notice, then nothing more."""
        if self._outcome or name not in self._live:
            return
        self._say(f"--preempt: taking {name} away, {self._notice_s:g} s of notice")
        self._taken.add(name)
        handle = self._live[name]
        handle.terminate()
        self._events.after(self._notice_s, handle.kill)

    def _time_out(self) -> None:
        reason = f"scheduling.timeout: {self._rules.timeout_s:g} s are over"
        self._end(Outcome(1, reason), reason)


__all__ = ["LAUNCHER", "Job", "Outcome", "PlanError"]
