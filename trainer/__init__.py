"""The training job: everything that runs in the container. It never imports launch/.

data, model    YOURS; contract and yours check and read them, settings and flags are the command line
task, run      the entry point, and one run in the order it happens: prepare, start, training, finish (or evaluator)
replicas       who is here, whether the others still are, being told to stop
strategies     which tf.distribute strategy fits, and the loops of those that step in their own way
input          records, their decoding, and which examples each step sees
loop, metrics  many steps in one call of the device; build makes the model, optimizer/ updates it
saving         checkpoints, folders, curves, and storage that misbehaves
guard          NaN, out of memory, refused batches, mistakes in YOUR two files; estimate and batch_size tell before
said           what TensorFlow said of a failure, in one line
report, export what people and services are told; the SavedModel, which predict asks
doctor         is this environment right for its hardware?

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
