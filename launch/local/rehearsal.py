"""Puts a job together: a spec's replicas, the rules of its `scheduling`, a runner and the environment."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launch.local import environment, plan, preempt, rules
from launch.local.plan import PlanError, Replica
from launch.local.runner import Runner
from launch.local.supervisor import NOTICE_S, Job


@dataclass(frozen=True)
class Rehearsal:
    """One job of this machine. `output` stands in for baseOutputDirectory; a trial's ends in the trial's id."""

    spec: Mapping
    output: Path
    extra_args: Sequence[str] = ()  # join every replica's args, after the file's own: the later one wins
    trial: str = ""
    runner: str = "process"  # or "docker"
    image: str = ""  # instead of every imageUri, in containers
    preemptions: Sequence[preempt.Preemption] = ()
    restarts: int | None = None
    notice_s: float = NOTICE_S
    gpus: Sequence[str] = ()  # ids of real ones, in the place of stand-ins
    folder: Path = field(default_factory=Path.cwd)  # the project's

    def replicas(self) -> list[Replica]:
        """Who takes part. Raises PlanError."""
        return plan.replicas(self.spec, self.extra_args)

    def job(self, show: Callable[[str, str], None]) -> Job:
        """The job, ready to run. Raises PlanError."""
        everyone = self.replicas()
        preempt.check(self.preemptions, everyone)
        self.output.mkdir(parents=True, exist_ok=True)
        if self.trial:
            environment.metric_file(self.output).parent.mkdir(parents=True, exist_ok=True)

        def variables(replica: Replica, addresses: Mapping[str, str]) -> Mapping[str, str]:
            given = environment.of_replica(
                replica,
                spec=self.spec,
                addresses=addresses,
                everyone=everyone,
                output=self.output,
                trial=self.trial,
            )
            return {**given, **self._gpus_of(replica, everyone)}

        return Job(
            everyone,
            rules.rules(self.spec.get("scheduling"), self.restarts),
            self._runner(),
            variables,
            show,
            self.preemptions,
            self.notice_s,
        )

    def _gpus_of(self, replica: Replica, everyone: Sequence[Replica]) -> dict[str, str]:
        """A replica's own of the real GPUs, in the order of the replicas."""
        if not self.gpus:
            return {}
        before = sum(one.accelerator_count for one in everyone[: everyone.index(replica)])
        own = self.gpus[before : before + replica.accelerator_count]
        return {"CUDA_VISIBLE_DEVICES": ",".join(own), "TRAINYARD_STAND_IN": ""}

    def _runner(self) -> Runner:
        run = f"{os.getpid()}-{os.urandom(4).hex()}"
        if self.runner == "docker":
            from launch.local.containers import Containers

            return Containers(run, self.output, self.image)
        from launch.local.processes import Processes

        return Processes(run, self.folder)

    def notes(self) -> list[str]:
        """What is not as it would be in the cloud, one sentence each."""
        everyone = self.replicas()
        return [*_stand_ins(everyone, self.spec), *_fewer(everyone), *_absences(self.spec, self.output)]


def _stand_ins(everyone: Sequence[Replica], spec: Mapping) -> list[str]:
    notes = []
    for pool in sorted({replica.pool for replica in everyone}):
        members = [replica for replica in everyone if replica.pool == pool]
        first = members[0]
        names = first.name if len(members) == 1 else f"{first.name} to {members[-1].name}"
        machine = spec["workerPoolSpecs"][pool].get("machineSpec") or {}
        kind, _, count = first.accelerators.partition(":")
        if first.reducer:
            notes.append(
                f"{names}: stood in for by a process that only waits: a Reduction Server serves NCCL on GPUs, "
                "here the workers sum gradients among themselves"
            )
        elif kind == "tpu":
            shape = machine.get("tpuTopology") or machine.get("acceleratorType")
            notes.append(
                f"{names}: a TPU ({machine.get('machineType')}, {shape}) stood in for by {count} logical CPU devices; "
                "static shapes, bfloat16 and XLA stay"
            )
        elif kind == "gpu":
            notes.append(
                f"{names}: {count} x {machine.get('acceleratorType')} stood in for by {count} logical CPU "
                f"device{'s' if count != '1' else ''}"
            )
    return notes


def _fewer(everyone: Sequence[Replica]) -> list[str]:
    """MultiWorkerMirroredStrategy without GPUs takes one device of each worker (TensorFlow 2.21)."""
    workers = [one for one in everyone if one.role in ("chief", "worker")]
    servers = [one for one in everyone if one.role == "ps" and not one.reducer]
    if len(workers) < 2 or servers or max(one.accelerator_count for one in workers) < 2:
        return []
    return [
        "several workers: of these devices TensorFlow's MultiWorkerMirroredStrategy uses one in each; the trainer's "
        "first line has the arithmetic"
    ]


def _absences(spec: Mapping, output: Path) -> list[str]:
    if spec.get("baseOutputDirectory"):
        return [f"baseOutputDirectory is {output}/ here"]
    return ["no baseOutputDirectory: no AIP_* is set, and in the cloud nothing that this job writes would be kept"]


__all__ = ["PlanError", "Rehearsal"]
