"""What happens after a replica fails: the service's rules, as a function of the file's `scheduling`.

Source: cloud.google.com/vertex-ai/docs/training/understanding-training-service (a replica restarts up to 5 times in
place, then the job up to 3 times) and .../use-spot-vms (a preempted Spot job is restarted up to 6 times).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from launch.local.plan import PlanError

Action = Literal["replica", "job", "fail"]
# The trainer's word for "the same would happen again", and the shell's for "no such command".
PERMANENT = {2: "bad flags, cluster or data", 126: "not executable", 127: "command not found"}
SIGNALS = {134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}


@dataclass(frozen=True)
class Rules:
    """`scheduling`, in what matters here. Limits count restarts, not runs."""

    restart_job: bool = False
    retries: bool = True
    spot: bool = False
    timeout_s: float | None = None
    replica_restarts: int = 5
    job_restarts: int = 3
    patient: bool = False  # go on even where a replica fails twice with the same words

    @property
    def preempted_job_restarts(self) -> int:
        """How often a job comes back after a machine was taken away."""
        return max(self.job_restarts, 6) if self.spot else self.job_restarts


@dataclass(frozen=True)
class Failure:
    """One replica's end. `code` is the shell's (128 + signal); `again` says that its last words were the same twice."""

    name: str
    code: int
    preempted: bool = False
    again: bool = False


def rules(scheduling: Mapping | None, restarts: int | None = None) -> Rules:
    """Rules from a spec's `scheduling`; `restarts` replaces both limits. Raises PlanError."""
    scheduling = scheduling or {}
    timeout = scheduling.get("timeout")
    if timeout is not None and not re.fullmatch(r"\d+(\.\d+)?s", str(timeout)):
        raise PlanError(f"scheduling.timeout is {timeout!r}; seconds with an s, such as 3600s, were expected")
    limits = {} if restarts is None else {"replica_restarts": restarts, "job_restarts": restarts, "patient": True}
    retries = not scheduling.get("disableRetries", False)
    return Rules(
        restart_job=retries and bool(scheduling.get("restartJobOnWorkerRestart", False)),
        retries=retries,
        spot=scheduling.get("strategy") == "SPOT",
        timeout_s=float(str(timeout)[:-1]) if timeout is not None else None,
        **limits,
    )


def decide(rules: Rules, failure: Failure, replica_restarts: int, job_restarts: int) -> tuple[Action, str]:
    """What follows a failure, and the sentence that says why.

    `replica_restarts` of this replica in this run of the job and `job_restarts` have happened before.
    """
    what = f"{failure.name} {'was taken away' if failure.preempted else ended(failure.code)}"
    if not rules.retries:
        return "fail", f"{what}; scheduling.disableRetries allows no restart"
    if failure.preempted and (rules.spot or rules.restart_job):
        limit = rules.preempted_job_restarts
        if job_restarts >= limit:
            return "fail", f"{what}; the job was restarted {limit} times already"
        why = "Spot" if rules.spot else "restartJobOnWorkerRestart"
        return "job", f"{what}; {why}: the whole job restarts ({job_restarts + 1} of {limit})"
    if not failure.preempted and failure.code in PERMANENT:
        return "fail", f"{what} ({PERMANENT[failure.code]}); the same would happen again"
    if failure.again and not rules.patient:
        return "fail", f"{what} twice with the same words; Vertex AI would try on, --restarts=5 does so here"
    if not rules.restart_job and replica_restarts < rules.replica_restarts:
        return "replica", f"{what}; it restarts ({replica_restarts + 1} of {rules.replica_restarts})"
    if job_restarts < rules.job_restarts:
        why = "restartJobOnWorkerRestart: " if rules.restart_job else ""
        return "job", f"{what}; {why}the whole job restarts ({job_restarts + 1} of {rules.job_restarts})"
    return "fail", f"{what}; no restart is left"


def ended(code: int) -> str:
    """An exit code in words: `exited with 137 (SIGKILL)`."""
    return f"exited with {code}" + (f" ({SIGNALS[code]})" if code in SIGNALS else "")
