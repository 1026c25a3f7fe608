"""A job file: read, ${VARIABLES} filled in, told apart, its pools at hand, each value with its place.

The file is Vertex AI's own: a CustomJobSpec (as `gcloud ai custom-jobs create --config` takes it) or a
HyperparameterTuningJob (`gcloud ai hp-tuning-jobs create --config`). See launch/validate for what is wrong in one.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Literal

from launch import project
from launch.spec import parse
from launch.spec.document import Document, Path, dig
from launch.spec.pool import Pool
from launch.spec.variables import Filler

__all__ = ["JobFile", "Pool", "dig", "read", "tell_kind"]

TUNING_KEYS = {"studySpec", "trialJobSpec", "maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"}


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


def read(file: str, variables: Mapping[str, str] | None = None) -> JobFile:
    """Read job file `file` (`-` is stdin) and fill in its variables.

    `variables` come from project.variables(); one that is known and has no value gets its placeholder and is
    named in JobFile.missing. What is wrong but still readable is in `.document.findings`. Raises UnreadableError.
    """
    values = project.variables(file) if variables is None else variables
    filler = Filler(file, values)
    doc = parse.read(file, filler)
    doc.findings.extend(filler.findings)
    return JobFile(doc, tell_kind(doc.data), filler.missing, frozenset(filler.used))


def tell_kind(data: dict) -> Literal["custom", "tuning"]:
    """By content: a tuning job has a study, trials to run, or a count of them."""
    near = {key for key in data if difflib.get_close_matches(key, TUNING_KEYS, n=1, cutoff=0.8)}
    return "tuning" if near and "workerPoolSpecs" not in data else "custom"
