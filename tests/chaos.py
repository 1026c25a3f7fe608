"""make chaos ROUNDS=60: jobs killed at random moments, each compared with one that never was.

Over OneDevice, Mirrored (2 devices) and MultiWorkerMirrored (3 processes), SIGKILL and SIGTERM, checkpoints on disk
and on the Cloud Storage emulator, data kept in memory and streamed: twelve kinds of job in turn. A round is one kill.
Exits with 1 where a final state differs, where more than one checkpoint interval was repeated after SIGKILL, or more
than one step after SIGTERM.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent / "trainer")]

from emulator import Emulator  # noqa: E402  found by the line above
from forkserver import ForkServer, Job  # noqa: E402

INTERVAL = 8
FLAGS = [
    "--deterministic",
    "--epochs=8",
    "--examples_per_epoch=720",
    "--batch_size=30",
    "--log_every_steps=2",
    f"--checkpoint_every={INTERVAL}steps",
    "--peer_timeout_s=20",
]
# the exported model follows from the weights, and its check in a fresh process takes longer than the training
NO_EXPORT = "import trainer.export; trainer.export.export = lambda *_: None"
STREAMED = "; from trainer.input import split; split.CACHE_BYTES = 0"
STRATEGIES = {"one_device": (1, 1), "mirrored": (1, 2), "multi_worker": (3, 1)}  # processes, devices of each


class Outcome:
    """What the rounds found."""

    def __init__(self) -> None:
        self.rounds = self.jobs = self.mismatches = 0
        self.kills = {signal.SIGKILL: 0, signal.SIGTERM: 0}
        self.repeated: dict[int, list[int]] = {signal.SIGKILL: [], signal.SIGTERM: []}
        self.ended_s: dict[int, list[float]] = {signal.SIGKILL: [], signal.SIGTERM: []}  # all processes, after a kill
        self.recover_s: list[float] = []
        self.problems: list[str] = []

    def report(self) -> int:
        """Print the table; the exit code."""
        most = {number: max(steps, default=0) for number, steps in self.repeated.items()}
        ended = {number: max(seconds, default=0.0) for number, seconds in self.ended_s.items()}
        recover = sorted(self.recover_s)
        print(f"rounds            {self.rounds} in {self.jobs} jobs")
        print(f"kills             {self.kills[signal.SIGKILL]} SIGKILL, {self.kills[signal.SIGTERM]} SIGTERM")
        print(f"steps repeated    at most {most[signal.SIGKILL]} after SIGKILL (interval {INTERVAL}), ", end="")
        print(f"{most[signal.SIGTERM]} after SIGTERM")
        print(f"seconds until all had ended  at most {ended[signal.SIGKILL]:.1f} after SIGKILL, ", end="")
        print(f"{ended[signal.SIGTERM]:.1f} after SIGTERM")
        if recover:
            print(f"seconds to recover  median {recover[len(recover) // 2]:.1f}, most {recover[-1]:.1f}")
        print(f"mismatches        {self.mismatches}")
        for problem in self.problems:
            print(f"  {problem}")
        over = most[signal.SIGKILL] > INTERVAL or most[signal.SIGTERM] > 1
        return int(bool(self.mismatches or self.problems or over))


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a job trains under, and where its examples come from; both decide about its bits."""

    strategy: str
    streamed: bool

    def __str__(self) -> str:
        return f"{self.strategy}-{'streamed' if self.streamed else 'kept'}"


def start(forks: ForkServer, kind: Kind, folder: pathlib.Path, run: int, place: str, extra: dict) -> list[Job]:
    """The processes of a job."""
    import jobs

    processes, devices = STRATEGIES[kind.strategy]
    environs = jobs.cluster(processes) if processes > 1 else [{}]
    stand_in = {"TRAINYARD_STAND_IN": f"gpu:{devices}"} if devices > 1 else {}
    setup = NO_EXPORT + (STREAMED if kind.streamed else "")
    return [
        forks.start([*FLAGS, f"--job_dir={place}"], folder / f"{run}-{index}.txt", environ | stand_in | extra, setup)
        for index, environ in enumerate(environs)
    ]


def last_step(text: str) -> int:
    """The last step that a log names."""
    return max(map(int, re.findall(r"^step (\d+)/", text, re.M)), default=0)


def resumed_step(text: str) -> int | None:
    """Where a run resumed; 0 where it began anew, None while it hasn't said so."""
    found = re.search(r"resuming at step (\d+)", text)
    return int(found[1]) if found else (0 if re.search(r"^step \d+/", text, re.M) else None)


def strike(chosen: random.Random, running: list[Job], outcome: Outcome) -> int:
    """Wait for a random moment and kill a random process; which signal, 0 where the job had ended before."""
    begun = last_step(running[0].text)
    target = chosen.randrange(2, 40, 2)
    by_time = time.monotonic() + chosen.uniform(0, 12) if chosen.random() < 0.25 else float("inf")
    while all(job.poll() is None for job in running) and time.monotonic() < by_time:
        resumed = resumed_step(running[0].text)
        if resumed is not None and last_step(running[0].text) >= max(begun, resumed) + target:
            time.sleep(chosen.uniform(0, 0.1))
            break
        time.sleep(0.005)
    if any(job.poll() is not None for job in running):
        return 0
    number = chosen.choice([signal.SIGKILL, signal.SIGTERM])
    chosen.choice(running).kill(number)
    outcome.kills[number] += 1
    outcome.rounds += 1
    return number


def recovered(running: list[Job], since: float, outcome: Outcome) -> None:
    """Note how long it took until the restarted job said where it goes on."""
    while resumed_step(running[0].text) is None and running[0].poll() is None and "finished" not in running[0].text:
        time.sleep(0.01)
    outcome.recover_s.append(time.monotonic() - since)


def play(
    forks: ForkServer,
    chosen: random.Random,
    kind: Kind,
    folder: pathlib.Path,
    place: str,
    extra: dict,
    outcome: Outcome,
    rounds: int,
) -> None:
    """One job, killed up to `rounds` times, then run to its end."""
    folder.mkdir(parents=True)
    outcome.jobs += 1
    reached, number, run = 0, 0, 0
    while True:
        since = time.monotonic()
        running = start(forks, kind, folder, run, place, extra)
        if run:
            recovered(running, since, outcome)
            resumed = resumed_step(running[0].text)
            if resumed is not None and number:
                outcome.repeated[number].append(max(0, reached - resumed))
        run += 1
        number = strike(chosen, running, outcome) if run <= rounds else 0
        struck = time.monotonic()
        if number and resumed_step(running[0].text) is None:
            for job in running:  # they would wait for the lost one to join; the platform ends them, or starts it again
                job.kill(signal.SIGKILL)
        codes = [job.wait() for job in running]
        if number:
            outcome.ended_s[number].append(time.monotonic() - struck)
        reached = last_step(running[0].text)
        if not number:
            if any(codes):
                outcome.problems.append(f"{folder.name}: run {run} ended with {codes}; see {running[0].output}")
            return


def undisturbed(forks: ForkServer, kind: Kind, folder: pathlib.Path) -> dict:
    """The final state of a job that nobody kills."""
    import jobs

    logs, place = folder / f"whole-{kind}", folder / f"places/whole-{kind}"
    logs.mkdir()
    running = start(forks, kind, logs, 0, str(place), {})
    codes = [job.wait() for job in running]
    if any(codes):
        raise SystemExit(f"a job that nobody killed failed:\n{running[0].text}")
    return jobs.final_state(place / "checkpoints")


def main() -> int:
    """Play the rounds and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--kills_per_job", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    chosen, outcome = random.Random(options.seed), Outcome()
    with ForkServer() as forks, Emulator(folder / "emulator") as emulator:
        os.environ.update(emulator.environ)
        import jobs

        wanted = {}
        while outcome.rounds < options.rounds:
            kind = Kind(list(STRATEGIES)[outcome.jobs % 3], streamed=outcome.jobs % 4 >= 2)
            if kind not in wanted:
                wanted[kind] = undisturbed(forks, kind, folder)
            remote = outcome.jobs % 2 == 1
            name = f"job-{outcome.jobs}-{kind}-{'emulator' if remote else 'disk'}"
            place = f"gs://{emulator.bucket}/{name}" if remote else f"{folder}/places/{name}"
            left = min(options.kills_per_job, options.rounds - outcome.rounds)
            play(forks, chosen, kind, folder / name, place, emulator.environ if remote else {}, outcome, left)
            different = jobs.differences(wanted[kind], jobs.final_state(f"{place}/checkpoints"))
            outcome.mismatches += bool(different)
            print(f"{name}: {outcome.rounds} rounds so far, {'MISMATCH' if different else 'the same bits'}", flush=True)
    code = outcome.report()
    if code:
        print(f"logs: {folder}")
    else:
        shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
