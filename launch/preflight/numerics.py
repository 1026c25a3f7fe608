"""NaN: learning rate, warm-up, clipping and precision outside the ranges that usually train.

The ranges are Adam's: Keras' own default is 1e-3, and published recipes for it lie between 1e-5 and 1e-2
(google-research/tuning_playbook, "Choosing the initial configuration"). A range is a hint: nothing here fails a job.
"""

import pathlib
from collections.abc import Iterator

from launch.checks import Check
from launch.preflight import accelerators
from launch.preflight.flags import Flags, of_job
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.spec import dig

LEARNING_RATES = (1e-6, 1e-2)
LARGE_BATCH = 1024
TRY = "make local CONFIG={name} ARGS='{args}'"


def look(job: Job) -> Iterator[Check]:
    """Every hint for the flags of the file, and for the bounds that a study gives the tuning service."""
    flags = of_job(job)
    hints = [*_learning_rate(flags), *_warm_up(flags), *_clipping(flags), *_precision(job, flags), *_study(job)]
    for name, found, fix, args in hints:
        yield Check(name, "warning", found, fix, TRY.format(name=pathlib.Path(job.file.file).stem, args=args))
    if not hints:
        yield Check(
            "numbers",
            "ok",
            f"learning rate {flags.number('learning_rate'):g}, {flags.number('warmup_steps'):g} warm-up steps, "
            f"clipping at {flags.number('clip_norm'):g}, {flags.text('precision')}",
        )


Hint = tuple[str, str, str, str]


def _learning_rate(flags: Flags) -> Iterator[Hint]:
    rate = flags.number("learning_rate")
    low, high = LEARNING_RATES
    if rate > high:
        found = f"--learning_rate={rate:g} is above {high:g}, where Adam often ends in NaN"
        yield "learning rate", found, "start at 1e-3, and let `make tune` search upwards", "--learning_rate=1e-3"
    elif rate < low:
        found = f"--learning_rate={rate:g} is below {low:g}: the loss will hardly move"
        yield "learning rate", found, "start at 1e-3", "--learning_rate=1e-3"


def _warm_up(flags: Flags) -> Iterator[Hint]:
    steps, batch, rate = (flags.number(name) for name in ("warmup_steps", "batch_size", "learning_rate"))
    if steps == 0 and (batch >= LARGE_BATCH or rate > 3e-3):
        found = f"no warm-up with a batch of {batch:g} and a learning rate of {rate:g}: the first steps may diverge"
        yield "warm-up", found, "let the learning rate climb over the first hundreds of steps", "--warmup_steps=200"
    total = flags.number("steps_per_epoch") * flags.number("epochs")
    if total and "warmup_steps" in flags.given and steps > total / 2:  # the default adapts itself to the run
        found = f"{steps:g} warm-up steps of {total:g} in all: most of the run is warm-up"
        yield "warm-up", found, "a tenth of the run is usual", f"--warmup_steps={max(1, int(total / 10))}"


def _clipping(flags: Flags) -> Iterator[Hint]:
    norm, half = flags.number("clip_norm"), flags.text("precision") == "mixed_float16"
    if norm == 0 and (half or flags.number("learning_rate") > 3e-3):
        found = "gradients are not clipped (--clip_norm=0), and one bad batch can end the run in NaN"
        yield "clipping", found, "clip at a global norm of 1", "--clip_norm=1"
    elif norm > 100:
        yield "clipping", f"--clip_norm={norm:g} clips next to nothing", "1 to 10 is usual", "--clip_norm=1"
    elif 0 < norm < 0.01:
        found = f"--clip_norm={norm:g} cuts nearly every gradient down"
        yield "clipping", found, "1 to 10 is usual", "--clip_norm=1"


def _precision(job: Job, flags: Flags) -> Iterator[Hint]:
    precision = flags.text("precision")
    if precision == "float32":
        return
    for pool in job.trainers:
        kind = accelerators.of(pool)
        ask = "--precision=mixed_bfloat16" if pool.architecture == "tpu" else "--precision=float32"
        if precision == "mixed_float16" and (pool.architecture != "gpu" or (kind and not kind.float16)):
            found = f"--precision=mixed_float16 on {pool.accelerator or pool.machine_type}, which has no fast float16"
            yield "precision", found, "bfloat16 has float32's range: nothing overflows, no loss scale", ask
        if precision == "mixed_bfloat16" and pool.architecture == "gpu" and kind and not kind.bfloat16:
            found = f"--precision=mixed_bfloat16 on {pool.accelerator}, which has no bfloat16 in hardware: slow"
            instead = "mixed_float16" if kind.float16 else "float32"
            yield "precision", found, f"use {instead} there", f"--precision={instead}"


def _study(job: Job) -> Iterator[Hint]:
    """The bounds of a tuning study's learning rate: trials beyond the range are trials thrown away."""
    usual = LEARNING_RATES[1]
    for parameter in dig(job.file.study, "parameters", kind=list, default=[]):
        if dig(parameter, "parameterId", kind=str, default="") != "learning_rate":
            continue
        highest = float(dig(parameter, "doubleValueSpec", "maxValue", kind=int | float, default=0))
        if highest > 10 * usual:
            found = f"the study tries learning rates up to {highest:g}: trials above {usual:g} often end in NaN"
            yield "learning rate", found, f"set its maxValue to {usual:g}", f"--learning_rate={highest:g}"
        if highest and dig(parameter, "scaleType", kind=str, default="") != "UNIT_LOG_SCALE":
            found = "the study's learning rate is not on a logarithmic scale: few trials will be small"
            yield "learning rate", found, "scaleType: UNIT_LOG_SCALE", "--learning_rate=1e-3"


PROBES = (Probe("numerics", "numbers", look),)
