"""Every flag of the trainer, typed and documented once. No TensorFlow here: a bad flag is told at once.

`flags.py` turns the fields into a command line; model.py's `Hyperparameters` joins them there.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _whole(value: Any) -> Any:
    """16.0 as 16: the tuning service passes discrete values so."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+\.0*", value):
        return value.split(".")[0]
    return value


Int = Annotated[int, BeforeValidator(_whole)]


def _flag(default: Any, group: str, text: str, **limits: Any) -> Any:
    return Field(default, description=text, json_schema_extra={"group": group}, **limits)


class Settings(BaseModel):
    """One training job. Paths may be local or gs://; times end in _s and are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    job_dir: str = _flag(
        "jobs/default",
        "Places",
        "folder of the job: model/, checkpoints/, logs/, result.json; the platform's own wins",
    )
    data_dir: str = _flag("data/digits", "Places", "where data.py finds the records; data.py's DATA_DIR is the default")
    model_dir: str = _flag("", "Places", "the exported model; default AIP_MODEL_DIR, else JOB_DIR/model")
    checkpoint_dir: str = _flag("", "Places", "default AIP_CHECKPOINT_DIR, else JOB_DIR/checkpoints")
    log_dir: str = _flag("", "Places", "TensorBoard's; default AIP_TENSORBOARD_LOG_DIR, else JOB_DIR/logs")

    epochs: Int = _flag(20, "Training", "how often the data is gone through", ge=1)
    batch_size: Int = _flag(64, "Training", "examples in one update, over all replicas", ge=1)
    accumulate: Int = _flag(1, "Training", "micro-batches that one update is summed from; saves memory", ge=1)
    seed: Int = _flag(0, "Training", "of weights, order, dropout and augmentation", ge=0, lt=2**31)
    steps_per_epoch: Int = _flag(0, "Training", "updates in an epoch; 0: as many as the data fills", ge=0)
    examples_per_epoch: Int = _flag(0, "Training", "the same, counted in examples; 0: all", ge=0)

    learning_rate: float = _flag(2e-3, "Optimizer", "highest learning rate of Adam", gt=0)
    warmup_steps: Int = _flag(
        50, "Optimizer", "updates over which the learning rate climbs from 0; by default at most a fifth of all", ge=0
    )
    decay: Literal["cosine", "none"] = _flag("cosine", "Optimizer", "what it does after that, down to 0")
    clip_norm: float = _flag(1.0, "Optimizer", "clip the whole batch's gradient at this global norm; 0: don't", ge=0)

    shuffle_buffer: Int = _flag(10_000, "Data", "records that are mixed at a time; 1: keep their order", ge=1)
    skip_bad_records: Int = _flag(0, "Data", "unreadable records to step over before the job fails", ge=0)
    shard: Literal["record", "file"] = _flag(
        "record", "Data", "what workers split: record keeps the order whatever their number, file reads less"
    )

    strategy: Literal[
        "auto", "one_device", "mirrored", "multi_worker", "parameter_server", "central_storage", "tpu"
    ] = _flag("auto", "Hardware", "how the work is spread; auto: what is there decides")
    communication: Literal["auto", "ring", "nccl"] = _flag("auto", "Hardware", "how replicas sum gradients")
    bytes_per_pack: Int = _flag(0, "Hardware", "bytes of gradients sent in one piece; 0: TensorFlow decides", ge=0)
    peer_timeout_s: float = _flag(50, "Hardware", "seconds without a peer after which a worker gives up", gt=0)
    min_shard_bytes: Int = _flag(
        0, "Hardware", "parameter servers share variables of more bytes than this; 0: each variable is on one", ge=0
    )
    one_worker_steps: Int = _flag(
        0, "Hardware", "parameter_server: first steps made one at a time, so that no gradient is stale", ge=0
    )
    scale_stale: bool = _flag(
        False, "Hardware", "parameter_server: divide the learning rate by the updates that a gradient came late"
    )
    require_accelerator: Literal["auto", "yes", "no"] = _flag(
        "auto",
        "Hardware",
        "stop where the accelerator that the job asked for is not seen; auto: in the cloud",
    )
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = _flag(
        "float32", "Hardware", "of the computation; variables stay float32"
    )
    jit: bool = _flag(False, "Hardware", "compile the step with XLA")
    steps_per_call: Int = _flag(0, "Hardware", "steps that the device does on its own; 0: up to the next event", ge=0)
    deterministic: bool = _flag(False, "Hardware", "the same bits every time, at some cost in speed")
    intra_op_threads: Int = _flag(0, "Hardware", "threads inside an operation; 0: TensorFlow decides", ge=0)
    inter_op_threads: Int = _flag(0, "Hardware", "operations at the same time; 0: TensorFlow decides", ge=0)

    checkpoint_every: str = _flag(
        "60s", "Checkpoints", "60s or 500steps", pattern=r"^[1-9][0-9]*(\.[0-9]+)?s$|^[1-9][0-9]*steps$"
    )
    keep_checkpoints: Int = _flag(3, "Checkpoints", "the newest to keep", ge=1)
    keep_best: str = _flag("", "Checkpoints", "keep the best by this as well, such as val_loss or max:val_accuracy")
    fresh: bool = _flag(False, "Checkpoints", "start over; what is there is set aside, not deleted")

    on_nan: Literal["stop", "rewind"] = _flag(
        "stop",
        "Trouble",
        "rewind: back to the last good checkpoint with half the learning rate, three times at most",
    )
    batch_size_fit: Literal["fail", "accumulate"] = _flag(
        "fail", "Trouble", "where a batch doesn't fit the memory: accumulate splits it, with the same result"
    )

    log_every_steps: Int = _flag(100, "Reports", "steps between two lines of the log", ge=1)
    histogram_epochs: Int = _flag(
        5, "Reports", "epochs between two sets of histograms and confusion matrices in TensorBoard; 0: none", ge=0
    )
    hypertune_metric: str = _flag("val_loss", "Reports", "the metric that the tuning service is told")
    profile_steps: str = _flag("", "Reports", "FIRST:LAST, the steps to profile", pattern=r"^$|^[0-9]+:[0-9]+$")
    verbose: bool = _flag(False, "Reports", "TensorFlow's own messages as well")


def adapted(settings: Settings) -> Settings:
    """The same with the default of --warmup_steps cut to a fifth of a run that the flags say the length of.

    So a run of five steps to try things is no mistake, and one of 250 or more has the 50 steps of the default.
    """
    epoch = settings.steps_per_epoch or settings.examples_per_epoch // settings.batch_size
    if not epoch:
        return settings
    return settings.model_copy(update={"warmup_steps": warmup_of(settings, epoch * settings.epochs)})


def warmup_of(settings: Settings, total: int) -> int:
    """--warmup_steps of a run of `total` steps: as given, else at most a fifth of them."""
    given = "warmup_steps" in settings.model_fields_set
    return settings.warmup_steps if given else min(settings.warmup_steps, total // 5)


def combinations(settings: Settings, replicas: int | None = None) -> list[tuple[str, str]]:
    """(flag, sentence) for every combination that can't work; `replicas` of the job, where known."""
    found = []
    batch, parts = settings.batch_size, (replicas or 1) * settings.accumulate
    if batch % parts:
        over = f"{replicas or 1} replicas" + (
            f" x {settings.accumulate} micro-batches" if settings.accumulate > 1 else ""
        )
        lower = batch // parts * parts
        instead = f"{lower} or {lower + parts}" if lower else f"{parts}"
        found.append(("--batch_size", f"--batch_size={batch} doesn't divide over {over}; try {instead}"))
    total = settings.steps_per_epoch * settings.epochs
    if total and settings.warmup_steps >= total:
        found.append(
            (
                "--warmup_steps",
                f"--warmup_steps={settings.warmup_steps} is not shorter than the run: "
                f"--steps_per_epoch={settings.steps_per_epoch} x --epochs={settings.epochs} = {total} steps",
            )
        )
    if settings.steps_per_epoch and settings.examples_per_epoch:
        found.append(
            (
                "--examples_per_epoch",
                "--examples_per_epoch and --steps_per_epoch say the same: give one of them",
            )
        )
    if settings.examples_per_epoch and settings.examples_per_epoch < batch:
        found.append(
            (
                "--examples_per_epoch",
                f"--examples_per_epoch={settings.examples_per_epoch} is less than one batch of {batch}",
            )
        )
    if settings.profile_steps:
        first, last = map(int, settings.profile_steps.split(":"))
        if first >= last:
            found.append(("--profile_steps", f"--profile_steps={settings.profile_steps} ends before it begins"))
    if settings.strategy == "parameter_server" and settings.accumulate > 1:
        found.append(("--accumulate", "--accumulate needs a synchronous strategy; --strategy=parameter_server is not"))
    return found


if __name__ == "__main__":
    import sys

    from trainer.flags import answer

    sys.exit(answer(sys.argv[1:]))
