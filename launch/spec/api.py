"""What Google Cloud takes: the API's own message types, and the alphabet of a label."""

import importlib
import importlib.util
import re
import sys


def types() -> tuple[type, type]:
    """The protobuf classes CustomJobSpec and HyperparameterTuningJob of google-cloud-aiplatform.

    Importing google.cloud.aiplatform_v1 runs its __init__, which loads some forty service clients (seconds).
    Only the message types are wanted, so the two packages above them are put in place without being run, and
    taken away afterwards: whoever imports the whole later gets the whole, with these same classes in it.
    """
    base = "google.cloud.aiplatform_v1"
    names = [name for name in (base, f"{base}.types") if name not in sys.modules]
    try:
        for name in names:
            sys.modules[name] = importlib.util.module_from_spec(importlib.util.find_spec(name))
        custom = importlib.import_module(f"{base}.types.custom_job")
        tuning = importlib.import_module(f"{base}.types.hyperparameter_tuning_job")
    finally:
        for name in names:
            sys.modules.pop(name, None)
    return custom.CustomJobSpec.pb(), tuning.HyperparameterTuningJob.pb()


def label_fits(key: str, value: str) -> bool:
    """Whether Google Cloud takes it as a label."""
    return bool(re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) and re.fullmatch(r"[a-z0-9_-]{0,63}", value))
