"""The GPUs of this machine, and who has which."""

import os
import shutil
import subprocess
from pathlib import Path


def gpus(folder: Path) -> list[str]:
    """Ids of the GPUs that trials may use: none where the project's environment has no CUDA to use them with.

    CUDA_VISIBLE_DEVICES, where it is set, has the say; else nvidia-smi.
    """
    if not list(folder.glob(".venv/lib/python*/site-packages/nvidia/cudnn")):
        return []
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [one for one in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if one.strip() not in ("", "-1")]
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return listed.stdout.split() if listed.returncode == 0 else []


class Shares:
    """Hands out GPUs, so that trials at the same time have their own."""

    def __init__(self, ids: list[str], each: int):
        """`each` is how many a trial needs; 0, or too few here, gives none."""
        self.each = each if each <= len(ids) else 0
        self._free = list(ids)

    @property
    def trials(self) -> int | None:
        """How many trials fit at a time; None where GPUs don't limit it."""
        return len(self._free) // self.each if self.each else None

    def take(self) -> list[str]:
        """The GPUs of one trial."""
        taken, self._free = self._free[: self.each], self._free[self.each :]
        return taken

    def give_back(self, taken: list[str]) -> None:
        """They are free again."""
        self._free = sorted(self._free + taken)
