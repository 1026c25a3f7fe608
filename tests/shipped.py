"""The job files that ship. A fork may lay its own beside them; the tests are about these."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = (
    "cpu", "flex_start", "gpu", "multi_gpu", "multi_worker", "parameter_server", "python_package",
    "reduction_server", "reserved", "spot", "tpu", "tpu_v3", "tune", "tune_grid",
)  # fmt: skip
CONFIGS = [ROOT / "configs" / f"{name}.yaml" for name in NAMES]
