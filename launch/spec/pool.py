"""One worker pool of a job file: who runs there, how many, on which machine, with what arguments."""

import dataclasses
import re

from launch import machines
from launch.spec.document import Path, dig

_ROLES = ("chief", "worker", "ps", "evaluator")


@dataclasses.dataclass(frozen=True)
class Pool:
    """One entry of workerPoolSpecs; `data` is {} for an empty one."""

    index: int
    path: Path
    data: dict

    @property
    def role(self) -> str:
        """chief, worker, ps or evaluator, by its place; `reducer` for Reduction Server's image in place 2."""
        if self.index == 2 and "reductionserver" in self.image:
            return "reducer"
        return _ROLES[self.index] if self.index < len(_ROLES) else "extra"

    @property
    def replicas(self) -> int:
        """Machines in the pool; 1 where it isn't said and there is something to run, as the API counts."""
        count = dig(self.data, "replicaCount", kind=int, default=None)
        if count is None:
            return 1 if self.container or self.package else 0
        return count

    @property
    def machine(self) -> dict:
        """machineSpec."""
        return dig(self.data, "machineSpec", kind=dict, default={})

    @property
    def machine_type(self) -> str:
        """machineSpec.machineType."""
        return dig(self.machine, "machineType", kind=str, default="")

    @property
    def accelerator(self) -> str:
        """acceleratorType, empty where there is none (a v5e TPU has none either)."""
        return dig(self.machine, "acceleratorType", kind=str, default="")

    @property
    def devices(self) -> int:
        """Accelerators that one replica sees; 0 without any."""
        topology = dig(self.machine, "tpuTopology", kind=str, default="")
        if topology:
            return machines.tpu_chips(topology) if re.fullmatch(r"\d{1,3}(x\d{1,3}){1,2}", topology) else 0
        return dig(self.machine, "acceleratorCount", kind=int, default=0) if self.accelerator else 0

    @property
    def architecture(self) -> str:
        """cpu, gpu or tpu: the image that the pool needs."""
        return machines.architecture(self.machine_type, self.accelerator)

    @property
    def container(self) -> dict:
        """containerSpec."""
        return dig(self.data, "containerSpec", kind=dict, default={})

    @property
    def package(self) -> dict:
        """pythonPackageSpec."""
        return dig(self.data, "pythonPackageSpec", kind=dict, default={})

    @property
    def image(self) -> str:
        """The image that runs: the container's, or the Python package's executor."""
        fallback = dig(self.package, "executorImageUri", kind=str, default="")
        return dig(self.container, "imageUri", kind=str, default="") or fallback

    @property
    def args(self) -> list[str]:
        """The arguments; what isn't text (a finding of validate) is left out."""
        return [arg for arg in dig(self._code, "args", kind=list, default=[]) if isinstance(arg, str)]

    @property
    def flags(self) -> dict[str, str]:
        """The arguments as a table, without the dashes."""
        return flags(self.args)

    @property
    def args_path(self) -> Path:
        """Where the arguments stand."""
        return (*self.path, "containerSpec" if self.container else "pythonPackageSpec", "args")

    @property
    def runs_trainer(self) -> bool:
        """Whether the pool runs our trainer with its flags: no command of its own, and no reducer."""
        if self.role == "reducer":
            return False
        module = dig(self.package, "pythonModule", kind=str, default="")
        return module == "trainer.task" or bool(self.container and not self.container.get("command"))

    @property
    def _code(self) -> dict:
        return self.container or self.package


def flags(args: list[str]) -> dict[str, str]:
    """`--flag=value`, `--flag value` and `--flag` alone ("true") as a table; the later wins, as in the trainer."""
    found, i = {}, 0
    while i < len(args):
        name, equals, value = args[i].removeprefix("--").partition("=")
        if args[i].startswith("--"):
            if not equals and i + 1 < len(args) and not args[i + 1].startswith("--"):
                i += 1
                equals, value = "=", args[i]
            found[name] = value if equals else "true"
        i += 1
    return found
