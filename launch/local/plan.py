"""What a job file asks for, as a list of replicas: who runs what, with which stand-ins.

Roles by position are Vertex AI's: pool 0 is the chief, 1 the workers, 2 the parameter servers (or the
reducers of a Reduction Server), 3 the evaluators. Source: cloud.google.com/vertex-ai/docs/training/distributed-training
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from launch import machines
from launch.errors import LaunchError

ROLES = ("chief", "worker", "ps", "evaluator")
ENTRYPOINT = ("python", "-m", "trainer.task")  # of the project's images
# Holds a reducer's place, and its port, until it is told to stop.
STAND_IN = (
    "python",
    "-c",
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); signal.pause()",
)


class PlanError(LaunchError):
    """The job file asks for something that can't be run here; the text says what and what to do."""


@dataclass(frozen=True)
class Replica:
    """One replica of a worker pool. An empty `command` is the image's own ENTRYPOINT."""

    role: str
    index: int
    pool: int
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    accelerators: str = ""  # "gpu:4", "tpu:8" or ""
    reducer: bool = False

    @property
    def name(self) -> str:
        """How people call it: chief, worker:1, reducer:0."""
        return "chief" if self.pool == 0 and self.index == 0 else f"{self.label}:{self.index}"

    @property
    def label(self) -> str:
        """The role that is shown, which for a reducer isn't the one in TF_CONFIG."""
        return "reducer" if self.reducer else self.role

    @property
    def accelerator_count(self) -> int:
        """How many accelerators it has."""
        return int(self.accelerators.partition(":")[2] or 0)

    @property
    def program(self) -> tuple[str, ...]:
        """The whole command line where there is no image to ask for its ENTRYPOINT."""
        return (*(self.command or ENTRYPOINT), *self.args)


def replicas(spec: Mapping, extra_args: Sequence[str] = ()) -> list[Replica]:
    """The replicas of a CustomJobSpec; `extra_args` join the args of all but the reducers.

    Raises PlanError.
    """
    found = []
    pools = spec.get("workerPoolSpecs") or []
    if not isinstance(pools, list) or len(pools) > len(ROLES):
        raise PlanError("workerPoolSpecs must be a list of 1 to 4 pools: chief, workers, servers, evaluators")
    for number, pool in enumerate(pools):
        found += _of_pool(pool or {}, number, tuple(extra_args))
    if not any(replica.pool == 0 for replica in found):
        raise PlanError("the first of workerPoolSpecs is the chief's, and it has no replica")
    return found


def _of_pool(pool: Mapping, number: int, extra_args: tuple[str, ...]) -> list[Replica]:
    container, package = pool.get("containerSpec"), pool.get("pythonPackageSpec")
    if not container and not package:
        return []
    where = f"workerPoolSpecs[{number}]"
    if package:
        if not package.get("pythonModule"):
            raise PlanError(f"{where}.pythonPackageSpec names no pythonModule")
        image, command = package.get("executorImageUri", ""), ("python", "-m", package["pythonModule"])
    else:
        image, command = container.get("imageUri", ""), tuple(container.get("command") or ())
    body = container or package
    reducer = number == 2 and "reductionserver" in image
    if reducer:
        command, args = STAND_IN, ()
    else:
        args = (*map(str, body.get("args") or ()), *extra_args)
    return [
        Replica(
            role=ROLES[number],
            index=index,
            pool=number,
            image=image,
            command=command,
            args=args,
            env=expanded(body.get("env") or ()),
            accelerators="" if reducer else accelerators(pool.get("machineSpec") or {}, where),
            reducer=reducer,
        )
        for index in range(_count(pool, where))
    ]


def _count(pool: Mapping, where: str) -> int:
    """replicaCount, which is 1 where the file doesn't say."""
    try:
        count = int(pool.get("replicaCount", 1))
    except (TypeError, ValueError):
        count = -1
    if not 0 <= count <= 1000:
        raise PlanError(f"{where}.replicaCount is {pool['replicaCount']!r}; a whole number was expected")
    return count


def accelerators(machine: Mapping, where: str = "machineSpec") -> str:
    """What a machine carries, as "gpu:COUNT", "tpu:CORES" or ""."""
    topology, kind = machine.get("tpuTopology"), str(machine.get("acceleratorType") or "")
    if topology and not re.fullmatch(r"\d+(x\d+)+", str(topology)):
        raise PlanError(f"{where}.machineSpec.tpuTopology is {topology!r}; something like 2x4 was expected")
    try:
        count = machines.replica_devices(machine)
    except (TypeError, ValueError):
        given = machine.get("acceleratorCount")
        raise PlanError(f"{where}.machineSpec.acceleratorCount is {given!r}; a whole number was expected") from None
    if count < 1:
        return ""
    return f"{'tpu' if topology or kind.startswith('TPU') else 'gpu'}:{count}"


def expanded(entries: Sequence[Mapping]) -> dict[str, str]:
    """env of a containerSpec, with $(NAME) filled in from the entries before it and $$(NAME) left as $(NAME)."""
    known: dict[str, str] = {}

    def fill(match: re.Match) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        return known.get(match[1], match[0])

    for entry in entries:
        known[str(entry.get("name", ""))] = re.sub(
            r"\$?\$\(([A-Za-z_][A-Za-z0-9_]*)\)", fill, str(entry.get("value", ""))
        )
    return known
