"""A job file: read, ${VARIABLES} filled in, told apart, its pools at hand, each value with its place.

The file is Vertex AI's own: a CustomJobSpec (as `gcloud ai custom-jobs create --config` takes it) or a
HyperparameterTuningJob (`gcloud ai hp-tuning-jobs create --config`). See launch/validate for what is wrong in one.
"""

import dataclasses
import difflib
import re
from collections.abc import Mapping
from typing import Any, Literal

from launch import machines, parse, project
from launch.document import Document, Finding, Mark, Path, UnreadableError

__all__ = ["Finding", "JobFile", "Mark", "Path", "Pool", "UnreadableError", "api_types", "dig", "read"]

TUNING_KEYS = {"studySpec", "trialJobSpec", "maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STRAY = re.compile(r"\$\{[^}]*\}?|\$[A-Za-z_][A-Za-z0-9_]*")
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


@dataclasses.dataclass
class JobFile:
    """A job file as read. `missing` names the variables that have no value: a placeholder stands for them.

    `used` names all that it uses.
    """

    document: Document
    kind: Literal["custom", "tuning"]
    missing: list[str]
    used: frozenset[str] = frozenset()

    @property
    def file(self) -> str:
        """The path as it was given."""
        return self.document.file

    @property
    def data(self) -> dict:
        """The whole file."""
        return self.document.data

    @property
    def prefix(self) -> Path:
        """Where the CustomJobSpec stands in the file."""
        return ("trialJobSpec",) if self.kind == "tuning" else ()

    @property
    def job(self) -> dict:
        """The CustomJobSpec: the file itself, or a tuning job's trialJobSpec."""
        return dig(self.data, *self.prefix, kind=dict, default={})

    @property
    def study(self) -> dict:
        """studySpec; {} for a custom job."""
        return dig(self.data, "studySpec", kind=dict, default={})

    @property
    def scheduling(self) -> dict:
        """scheduling of the job."""
        return dig(self.job, "scheduling", kind=dict, default={})

    @property
    def pools(self) -> list[Pool]:
        """The worker pools in their order, empty ones included."""
        base = (*self.prefix, "workerPoolSpecs")
        entries = dig(self.job, "workerPoolSpecs", kind=list, default=[])
        return [
            Pool(index, (*base, index), entry if isinstance(entry, dict) else {}) for index, entry in enumerate(entries)
        ]

    @property
    def output(self) -> str:
        """baseOutputDirectory.outputUriPrefix, empty where there is none."""
        return dig(self.job, "baseOutputDirectory", "outputUriPrefix", kind=str, default="")

    @property
    def architecture(self) -> str:
        """The image that the file needs: that of its first pool with an accelerator, else cpu."""
        needed = [pool.architecture for pool in self.pools if pool.runs_trainer]
        return next((name for name in needed if name != "cpu"), "cpu")


def dig(data: Any, *path: str | int, kind: type, default: Any) -> Any:
    """The value at `path` if it is there and of the type `kind` (true isn't a number), else `default`."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return default
    if isinstance(data, bool) and kind is not bool:
        return default
    return data if isinstance(data, kind) else default


def read(file: str, variables: Mapping[str, str] | None = None) -> JobFile:
    """Read job file `file` (`-` is stdin) and fill in its variables.

    `variables` come from project.variables(); one that is known and has no value gets its placeholder and is
    named in JobFile.missing. What is wrong but still readable is in `.document.findings`. Raises UnreadableError.
    """
    values = project.variables(file) if variables is None else variables
    filler = _Filler(file, values)
    doc = parse.read(file, filler)
    doc.findings.extend(filler.findings)
    return JobFile(doc, tell_kind(doc.data), filler.missing, frozenset(filler.used))


def tell_kind(data: dict) -> Literal["custom", "tuning"]:
    """By content: a tuning job has a study, trials to run, or a count of them."""
    near = {key for key in data if difflib.get_close_matches(key, TUNING_KEYS, n=1, cutoff=0.8)}
    return "tuning" if near and "workerPoolSpecs" not in data else "custom"


class _Filler:
    """Puts values into a scalar's text, and remembers what it couldn't."""

    def __init__(self, file: str, values: Mapping[str, str]):
        self.file = file
        self.values = values
        self.missing: list[str] = []
        self.used: set[str] = set()
        self.findings: list[Finding] = []

    def __call__(self, text: str, mark: Mark) -> str:
        if "$" not in text:
            return text
        for stray in _STRAY.finditer(text):
            if not _VARIABLE.fullmatch(stray[0]):
                fix = "write ${NAME}; what the container shall fill in is written $(NAME)"
                self._note(mark, f"{stray[0]} in {text!r:.80}", "variables written ${NAME}", fix)
        return _VARIABLE.sub(lambda match: self._value(match[1], mark), text)

    def _value(self, name: str, mark: Mark) -> str:
        self.used.add(name)
        if name in self.values:
            return self.values[name]
        if name in project.KNOWN:
            if name not in self.missing:
                self.missing.append(name)
            return project.KNOWN[name].placeholder
        near = difflib.get_close_matches(name.upper(), project.KNOWN, n=1)
        fix = (
            f"write ${{{near[0]}}}" if near else "write the value itself, or add the name to KNOWN in launch/project.py"
        )
        self._note(mark, f"${{{name}}}, which nothing fills in", f"one of {', '.join(project.KNOWN)}", fix)
        return f"${{{name}}}"

    def _note(self, mark: Mark, came: str, expected: str, fix: str) -> None:
        self.findings.append(Finding(self.file, mark, came, expected, fix))


def api_types() -> tuple[type, type]:
    """The protobuf classes CustomJobSpec and HyperparameterTuningJob of google-cloud-aiplatform.

    Importing google.cloud.aiplatform_v1 runs its __init__, which loads some forty service clients (seconds).
    Only the message types are wanted, so the two packages above them are put in place without being run, and
    taken away afterwards: whoever imports the whole later gets the whole, with these same classes in it.
    """
    import importlib
    import importlib.util
    import sys

    base = "google.cloud.aiplatform_v1"
    names = [name for name in (base, f"{base}.types") if name not in sys.modules]
    try:
        for name in names:
            sys.modules[name] = importlib.util.module_from_spec(importlib.util.find_spec(name))
        custom = importlib.import_module(f"{base}.types.custom_job")
        tuning = importlib.import_module(f"{base}.types.hyperparameter_tuning_job")
    finally:
        for name in names:
            sys.modules.pop(name, None)
    return custom.CustomJobSpec.pb(), tuning.HyperparameterTuningJob.pb()


def label_fits(key: str, value: str) -> bool:
    """Whether Google Cloud takes it as a label."""
    return bool(re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) and re.fullmatch(r"[a-z0-9_-]{0,63}", value))
