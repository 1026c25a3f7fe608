"""The other places where a job may run: RETRY_PLACES in project.env, gone through one after the other.

    RETRY_PLACES=us-east4 europe-west4/g2-standard-12 us-central1/n1-standard-8/NVIDIA_TESLA_T4

Each is REGION, REGION/MACHINE or REGION/MACHINE/ACCELERATOR. Without a machine it is the job file's own.
"""

import copy
import dataclasses
import os
import re

from launch import machines, project
from launch.errors import LaunchError
from launch.vertex.request import Request

NAME = "RETRY_PLACES"
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")


@dataclasses.dataclass(frozen=True)
class Place:
    """A region, and the machine and accelerator that take the place of the file's; "" leaves those."""

    region: str
    machine: str = ""
    accelerator: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.region, self.machine, self.accelerator) if part)


def configured() -> list[Place]:
    """The places of project.env (or of the environment). Raises LaunchError for one that can't be read."""
    text = os.environ.get(NAME) or project.read_env(project.ENV_FILE).get(NAME, "")
    return [parsed(entry) for entry in re.split(r"[\s,]+", text) if entry]


def parsed(entry: str) -> Place:
    """One entry of RETRY_PLACES."""
    parts = entry.split("/")
    known = len(parts) < 2 or parts[1] in machines.all_types()
    if not _REGION.fullmatch(parts[0]) or len(parts) > 3 or not known:
        expected = "REGION, REGION/MACHINE or REGION/MACHINE/ACCELERATOR, such as us-east4/g2-standard-12"
        what = f"{NAME} has {entry}" + ("" if known else f", and no machine is called {parts[1]}")
        raise LaunchError(f"{what}. Expected: {expected}")
    return Place(*parts)


def at(made: Request, place: Place) -> tuple[Request, list[str]]:
    """(the request at another place, what had to be changed besides). Raises LaunchError where it can't run there."""
    body, remarks = copy.deepcopy(made.body), []
    spec = body["trialJobSpec"] if made.kind == "tuning" else body["jobSpec"]
    if place.region != made.region:
        if any("reservationAffinity" in pool.get("machineSpec", {}) for pool in spec["workerPoolSpecs"]):
            raise LaunchError(f"the job takes a reservation, which is in {made.region}: it can't run in {place.region}")
        if spec.pop("tensorboard", None):
            remarks.append(f"without its TensorBoard, which is in {made.region}")
    if place.machine:
        first = spec["workerPoolSpecs"][0]["machineSpec"]["machineType"]
        for pool in spec["workerPoolSpecs"]:
            if pool.get("machineSpec", {}).get("machineType") == first:
                pool["machineSpec"] = _machine(pool["machineSpec"], place)
    return dataclasses.replace(made, region=place.region, body=body), remarks


def _machine(spec: dict, place: Place) -> dict:
    """The machineSpec with the place's machine: as many accelerators as before, of a kind that it has."""
    count = int(spec.get("acceleratorCount") or 0)
    if machines.is_tpu(place.machine) or machines.is_tpu(spec["machineType"]):
        raise LaunchError(f"{NAME} has {place}, and a TPU's machine can't be exchanged: name the region alone")
    fits = machines.gpus(place.machine)
    if bool(fits) != bool(count):
        kind = "accelerators" if count else "no accelerator"
        raise LaunchError(f"{NAME} has {place}, and the job needs a machine with {kind}")
    if not count:
        return {**spec, "machineType": place.machine}
    kind = place.accelerator or (next(iter(fits)) if len(fits) == 1 else spec["acceleratorType"])
    if count not in fits.get(kind, ()):
        there = "; ".join(f"{name}: {', '.join(map(str, counts))}" for name, counts in fits.items())
        raise LaunchError(f"{NAME} has {place}, which can't have {count} x {kind}. Expected one of: {there}")
    return {**spec, "machineType": place.machine, "acceleratorType": kind}
