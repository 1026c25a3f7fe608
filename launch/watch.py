"""`launch watch [JOB]`: its state, its log and its trials until the end; the exit code is the job's outcome."""

import argparse
import contextlib
import json
import signal
import tempfile
import threading
import time
from collections.abc import Iterator

from launch import vertex
from launch.arguments import seconds
from launch.vertex import trials
from launch.vertex.logs import SEVERITIES, Line, Reader

COLORS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red", "ALERT": "bold red", "EMERGENCY": "bold red"}
EVERY_S = 10.0
PATIENCE_S = 1800.0  # without any answer, before the watch gives up
LATE_S = 5.0  # log lines of the last moments arrive after the state says that it is over
GOOD = {"SUCCEEDED", "PARTIALLY_SUCCEEDED"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `watch`."""
    parser.add_argument("job", nargs="?", help="a job's name, id or display name; without one, the last submitted")
    parser.add_argument("--every", type=seconds, default=EVERY_S, metavar="SECONDS", help="how often to ask [10]")
    parser.add_argument("--severity", choices=SEVERITIES, default="DEFAULT", help="log lines from this one up")
    parser.add_argument("--no_diagnose", action="store_true", help="don't explain a failure")


def run(options: argparse.Namespace) -> int:
    """Watch a job; 0 when it succeeded, 1 when it ended otherwise."""
    job = vertex.find(options.job)
    return follow(job, every_s=options.every, severity=options.severity, diagnose=not options.no_diagnose)


def follow(job: vertex.Job, *, every_s: float = EVERY_S, severity: str = "DEFAULT", diagnose: bool = True) -> int:
    """Tell what happens to the job until it ends. Ctrl-C ends the watch, not the job."""
    try:
        with _ctrl_c() as heard, tempfile.NamedTemporaryFile("w", suffix=".jsonl", prefix="job-log-") as kept:
            watch = _Watch(job, max(every_s, 0.05), severity, kept, heard)
            ended = watch.until_end()
            kept.flush()
            if ended not in GOOD and diagnose:
                _explain(kept.name)
            return 0 if ended in GOOD else 1
    except KeyboardInterrupt:
        print(f"\nThe job goes on. Watch it again: python -m launch watch {job.name}")
        return 130


@contextlib.contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Is set once Ctrl-C came. Python loses a KeyboardInterrupt that is raised in a destructor or an import's lock."""
    heard = threading.Event()

    def note(*_: object) -> None:
        heard.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only there a signal can be handled
        yield heard
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)


class _Watch:
    """One job being watched until it ends or `heard` is set; `kept` gets its log as JSON lines for the diagnosis."""

    def __init__(self, job: vertex.Job, every_s: float, severity: str, kept, heard: threading.Event):
        self.job, self.heard = job, heard
        self.every_s = every_s
        self.severity = severity
        self.kept = kept
        self.state = ""
        self.trials: dict[str, str] = {}
        self.reader: Reader | None = None
        self.log_refused = False
        self.silent_since: float | None = None

    def until_end(self) -> str:
        """Ask, tell and wait until the job has ended; its last state."""
        while True:
            described = self._ask(vertex.describe, self.job)
            if described is not None:
                self._tell_state(described)
                self._tell_trials(described)
                ended = self.state in vertex.ENDED
                if ended:
                    time.sleep(min(LATE_S, self.every_s))
                self._tell_log(described)
                if ended:
                    self._tell_end(described)
                    return self.state
            if self.heard.is_set():
                raise KeyboardInterrupt
            time.sleep(self.every_s)

    def _ask(self, question, *arguments):
        """The answer, or None where there was none for now. What won't get better by waiting is raised."""
        try:
            answer = question(*arguments)
        except vertex.GcloudError as error:
            if not error.transient:
                raise
            now = time.monotonic()
            if self.silent_since is None:
                self.silent_since = now
                self._note(f"no answer, asking again: {error.said.splitlines()[-1]:.160}")
            if now - self.silent_since > PATIENCE_S:
                raise
            return None
        if self.silent_since is not None:
            self._note(f"connected again after {time.monotonic() - self.silent_since:.0f} s")
            self.silent_since = None
        return answer

    def _tell_state(self, described: dict) -> None:
        state = vertex.state(described)
        if state != self.state:
            self._note(
                f"{self.state or 'job'} -> {state}" if self.state else f"{described.get('displayName')}: {state}"
            )
            self.state = state
            for replica, link in (described.get("webAccessUris") or {}).items():
                self._note(f"shell into {replica}: {link}")

    def _tell_log(self, described: dict) -> None:
        if self.log_refused:
            return
        if self.reader is None:
            self.reader = Reader(self.job, described.get("createTime", ""), self.severity)
        try:
            for line in self._ask(self.reader.read) or []:
                self._tell_line(line)
        except vertex.GcloudError as error:
            self.log_refused = True
            self._note(f"the log can't be read, only states follow (it takes roles/logging.viewer): {error.said:.300}")

    def _tell_line(self, line: Line) -> None:
        from rich.text import Text

        from launch.console import console

        self.kept.write(json.dumps(line.entry) + "\n")
        text = Text(f"{line.time.astimezone():%H:%M:%S} {line.replica:<10} ")
        word = "" if line.severity in ("DEFAULT", "INFO") else f"{line.severity} "
        text.append(word + line.message, style=COLORS.get(line.severity, ""))
        console().print(text)

    def _tell_trials(self, described: dict) -> None:
        for trial in described.get("trials") or []:
            number, state = str(trial.get("id")), vertex.state(trial)
            if self.trials.get(number) != state:
                self.trials[number] = state
                self._note(f"trial {number} {state}  {trials.measured(trial)}  {trials.values(trial)}")

    def _tell_end(self, described: dict) -> None:
        from launch.console import console

        if described.get("trials"):
            console().print(trials.table(described))
        message = (described.get("error") or {}).get("message")
        if message:
            self._note(message)
            self.kept.write(json.dumps({"severity": "ERROR", "message": message}) + "\n")
        self._note(f"{described.get('displayName')}: {self.state}  {self.job.link}")

    def _note(self, text: str) -> None:
        from rich.text import Text

        from launch.console import console

        console().print(Text(f"{time.strftime('%H:%M:%S')} {text}", style="bold"))


def _explain(log: str) -> None:
    """What `launch diagnose` makes of the log."""
    from launch.__main__ import VERBS, main

    if "diagnose" in VERBS:
        main(["diagnose", log])
