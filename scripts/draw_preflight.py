"""Draws docs/preflight.svg: `launch preflight` itself, against the small cloud of the tests with three faults."""

import io
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402

from launch import console, preflight  # noqa: E402
from tests import google_world  # noqa: E402
from tests.standin import StandIn  # noqa: E402

WIDTH = 118  # characters


def main() -> None:
    """Write the picture; takes as long as preflight does."""
    recorded = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    console.console = lambda: recorded
    with StandIn() as api, tempfile.TemporaryDirectory() as home:
        google = google_world.Google(api)
        google.labels["org.trainyard.accelerator"] = "cpu"
        google.act_as = []
        google.limits["custom_model_training_nvidia_l4_gpus"] = {"us-central1": 0, "europe-west4": 4}
        os.environ.update(api.environment(pathlib.Path(home), google_world.PROJECT))
        os.environ["TRAINYARD_REGISTRY_ENDPOINT"] = api.address
        began = time.monotonic()
        checks = preflight.look("configs/gpu.yaml", google_world.VARIABLES, timeout_s=60)
        preflight.show(checks, "configs/gpu.yaml", time.monotonic() - began)
    svg = recorded.export_svg(title="make preflight CONFIG=gpu")
    # no fonts from elsewhere: the reader's own monospace will do
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "monospace")
    (ROOT / "docs" / "preflight.svg").write_text(re.sub(r"[ \t]+$", "", svg, flags=re.M) + "\n")


if __name__ == "__main__":
    main()
