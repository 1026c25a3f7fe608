"""What model.py and data.py must define, checked before anything is built.

data.py: records(split, data_dir), parse(record, training); optional decode, augment, DATA_DIR, CLASS_NAMES.
model.py: Hyperparameters, build_model(hyperparameters, optimizer); optional callbacks(hyperparameters).
"""

import inspect
from types import ModuleType

from trainer.input.sources import DataError

REQUIRED = {"data": {"records": 2, "parse": 2}, "model": {"build_model": 2}}
OPTIONAL = {"data": {"decode": 1, "augment": 3}, "model": {"callbacks": 1}}


def check(data: ModuleType, model: ModuleType) -> None:
    """Raises DataError with a sentence for the first name that is missing or can't be called as it will be."""
    for module, short in ((data, "data"), (model, "model")):
        for name, arguments in (REQUIRED[short] | OPTIONAL[short]).items():
            found = getattr(module, name, None)
            if found is None and name in OPTIONAL[short]:
                continue
            if not callable(found):
                wanted = f"{name} with {arguments} arguments"
                raise DataError(f"trainer/{short}.py defines no {name}; the trainer calls {wanted} (docs/contract.md)")
            if not _takes(found, arguments):
                raise DataError(
                    f"trainer/{short}.py: {name}{inspect.signature(found)} came; "
                    f"the trainer calls it with {arguments} arguments or more (docs/contract.md)"
                )
            if name == "augment" and not _takes_seed(found):
                raise DataError(
                    f"trainer/data.py: augment{inspect.signature(found)} came; "
                    "the trainer calls it with seed=..., so the last has to be named seed (docs/contract.md)"
                )


def _takes_seed(function: object) -> bool:
    parameters = inspect.signature(function).parameters
    return "seed" in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _takes(function: object, arguments: int) -> bool:
    parameters = inspect.signature(function).parameters.values()
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return True
    return sum(kind is not inspect.Parameter.VAR_KEYWORD for kind in kinds) >= arguments
