"""The entry point: settings -> cluster -> strategy -> data -> model -> loop -> export, and the exit code.

0 done, 1 failed, 2 flags, cluster or data that can't work, 143 told to stop: saved, and to be started again.
"""

import atexit
import os
import sys

from trainer import doctor, finished, flags
from trainer.guard import own
from trainer.replicas import cluster
from trainer.replicas.interrupt import Interrupt
from trainer.saving.places import places
from trainer.settings import Settings
from trainer.strategies import tpu

DONE, FAILED, UNUSABLE, STOPPED = 0, 1, 2, 143


def main(argv: list[str] | None = None) -> int:
    """Run the job that the command line describes."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv in (["--help"], ["-h"]):
            print(flags.help_text())
            return DONE
        settings, hyperparameters = flags.parse(argv)
        here = cluster.read_cluster()
    except (flags.FlagError, cluster.ClusterError) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    if _unfit(settings):
        return UNUSABLE
    if finished.without_tensorflow(places(settings), settings, here):
        return DONE
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.update(tpu.environment(here.machine_type))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0" if settings.verbose else "2")
    with Interrupt() as interrupt:
        try:
            from trainer import run  # TensorFlow takes seconds to import: a wrong flag is told before
        except Exception as error:
            if settings.verbose or not own.place(error):
                raise
            print(f"{own.told(error)}; --verbose shows the stack", file=sys.stderr)
            return UNUSABLE
        return run.run(settings, hyperparameters, here, interrupt)


def _unfit(settings: Settings) -> bool:
    """Say what the doctor finds wrong with this environment; whether that ends the job before it begins."""
    wrong = [check for check in doctor.check() if check.status == "failure"]
    for check in wrong:
        print(f"{check.name}: {check.found}, wanted {check.wanted}; {check.fix}", file=sys.stderr)
    if wrong and settings.require_accelerator == "no":
        print("training all the same: --require_accelerator=no", file=sys.stderr)
        return False
    return bool(wrong)


def _leave(codes: list[int]) -> None:
    """End the process with the job's code, if it has come to one; else in Python's own way, with its traceback."""
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])


if __name__ == "__main__":
    codes: list[int] = []
    # Registered first, so called last: what a fork's libraries registered is done by then. What would come next is
    # TensorFlow's own end, which waits up to 10 s for workers that have ended before, while the machines cost money.
    atexit.register(_leave, codes)
    codes.append(main())
    sys.exit(codes[0])
