"""The training job: everything that runs in the container.

TRAINYARD_EXAMPLE=tests/examples/text takes model.py and data.py from that folder instead of from here. So an example
can be tried without replacing anything, and so do the tests that need a model which they know.
"""

import os
import sys

if os.environ.get("TRAINYARD_EXAMPLE"):
    _folder = os.path.abspath(os.environ["TRAINYARD_EXAMPLE"])
    if not all(os.path.isfile(os.path.join(_folder, name)) for name in ("model.py", "data.py")):
        print(f"TRAINYARD_EXAMPLE={_folder} came; expected a folder with model.py and data.py", file=sys.stderr)
        sys.exit(2)
    os.environ["TRAINYARD_EXAMPLE"] = _folder  # for processes that start elsewhere
    __path__.insert(0, _folder)
