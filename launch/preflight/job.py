"""The job file in the terms that the checks need, on top of launch.spec."""

import dataclasses
import math
import re
import time
from collections.abc import Iterator, Mapping

from launch import project, spec
from launch.spec import Pool, dig

WRITTEN = {"job_dir", "model_dir", "checkpoint_dir", "log_dir"}


@dataclasses.dataclass(frozen=True)
class Job:
    """A job file, filled in. `project` and `region` are where it is to run; "" where nothing says so."""

    file: spec.JobFile
    project: str
    region: str
    variables: Mapping[str, str]
    until: float = math.inf  # time.monotonic() by which every check is to be done

    @classmethod
    def read(cls, path: str, variables: Mapping[str, str]) -> "Job":
        """From a file and the variables that fill it. Raises UnreadableError."""
        file = spec.read(path, variables)
        return cls(file, variables.get("PROJECT", ""), variables.get("REGION", ""), variables)

    def again(self) -> spec.JobFile:
        """The file read once more, for somebody who changes what was read."""
        return spec.read(self.file.file, self.variables)

    @property
    def pools(self) -> list[Pool]:
        """The pools with something in them."""
        return [pool for pool in self.file.pools if pool.data and pool.replicas > 0]

    @property
    def trainers(self) -> list[Pool]:
        """The pools that compute gradients: reducers, parameter servers and evaluators don't."""
        return [pool for pool in self.pools if pool.role in ("chief", "worker")]

    @property
    def devices(self) -> int:
        """Replicas that share a global batch; 1 under parameter servers, where each worker takes its own."""
        from launch.spec.strategy import replicas_in_sync

        return replicas_in_sync(self.file) or 1

    @property
    def trials_at_a_time(self) -> int:
        """How many copies of the job run together: a tuning job's parallelTrialCount."""
        return dig(self.file.data, "parallelTrialCount", kind=int, default=1) if self.file.kind == "tuning" else 1

    @property
    def runs_as(self) -> str:
        """The service account that the file names, or "" for the Custom Code Service Agent."""
        return dig(self.file.job, "serviceAccount", kind=str, default="")

    @property
    def strategy(self) -> str:
        """Of provisioning: STANDARD, SPOT or FLEX_START."""
        return dig(self.file.scheduling, "strategy", kind=str, default="STANDARD")

    def remaining_s(self) -> float:
        """Seconds that a check may still take."""
        return min(600.0, max(0.1, self.until - time.monotonic()))

    def lacks(self, name: str) -> bool:
        """Whether a placeholder stands for this variable somewhere in the file."""
        return name in self.file.missing

    def buckets(self) -> dict[str, set[str]]:
        """Bucket -> what the job does with it: "read", "write". A placeholder is no bucket."""
        found: dict[str, set[str]] = {}
        for use, text in self._places():
            for bucket in re.findall(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])", text):
                if not (self.lacks("BUCKET") and bucket == project.KNOWN["BUCKET"].placeholder):
                    found.setdefault(bucket, set()).add(use)
        return found

    def _places(self) -> Iterator[tuple[str, str]]:
        yield "write", self.file.output
        for pool in self.pools:
            for package in dig(pool.package, "packageUris", kind=list, default=[]):
                yield "read", str(package)
            for flag, value in pool.flags.items():
                yield ("write" if flag in WRITTEN else "read"), value
            for entry in dig(pool.container or pool.package, "env", kind=list, default=[]):
                yield "read", str(dig(entry, "value", kind=str, default=""))
