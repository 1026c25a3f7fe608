"""What model.py and data.py say of themselves, read without importing them: TensorFlow takes seconds."""

import ast
import functools
import hashlib
import importlib.util
import pathlib
import sys
import types

from trainer.problems import FlagError, Problem


def _file(name: str) -> pathlib.Path:
    found = importlib.util.find_spec(f"trainer.{name}")
    return pathlib.Path(found.origin) if found else pathlib.Path(__file__).with_name(f"{name}.py")


MODEL_FILE, DATA_FILE = _file("model"), _file("data")


def contents() -> dict[str, str]:
    """A hash of each of the two files; another one means that it was changed."""
    files = {"model.py": MODEL_FILE, "data.py": DATA_FILE}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.exists()}


def hyperparameters_class(path: pathlib.Path = MODEL_FILE) -> type:
    """`Hyperparameters` of model.py, without importing the rest of it. Raises FlagError.

    The class may use the standard library, pydantic and constants of its own module; a module that
    can't be taken apart so is imported whole.
    """
    tree = _parsed(path)
    wanted = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Hyperparameters"]
    if not wanted:
        raise _error(f"{path.name} defines no class Hyperparameters; a dataclass or pydantic model is expected")
    light = [node for node in tree.body if _is_light(node)]
    module = types.ModuleType("trainer_hyperparameters")
    sys.modules[module.__name__] = module  # dataclasses and pydantic look annotations up there
    try:
        exec(compile(ast.Module([*light, *wanted], []), str(path), "exec"), module.__dict__)
    except NameError:
        return _imported(path)
    except Exception as error:  # whatever it is, the class is the user's: it's told in a line
        raise _error(f"trainer/{path.name}: Hyperparameters can't be made: {error}".split("\n")[0]) from None
    return module.Hyperparameters


def _imported(path: pathlib.Path) -> type:
    try:
        import trainer.model
    except Exception as error:
        raise _error(f"trainer/{path.name} can't be imported: {type(error).__name__}: {error}".split("\n")[0]) from None
    return trainer.model.Hyperparameters


@functools.cache  # a study asks about hundreds of command lines
def data_dir(path: pathlib.Path = DATA_FILE) -> str | None:
    """`DATA_DIR` of data.py, a string: the default of --data_dir; None where it has none. Raises FlagError."""
    for node in _parsed(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "DATA_DIR" for target in targets):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                return node.value.value
            wanted = 'DATA_DIR has to be a plain string, DATA_DIR = "..."'
            raise _error(f"trainer/{path.name}, line {node.lineno}: {wanted}")
    return None


def _parsed(path: pathlib.Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except SyntaxError as error:
        raise _error(f"trainer/{path.name}, line {error.lineno}: {error.msg}") from None
    except (OSError, ValueError) as error:
        raise _error(f"trainer/{path.name} can't be read: {error}") from None


def _error(message: str) -> FlagError:
    return FlagError([Problem("", None, message)])


def _is_light(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return all(_is_light_module(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and _is_light_module(node.module or "")
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        try:
            ast.literal_eval(node.value)
        except ValueError:
            return False
        return True
    return False


def _is_light_module(name: str) -> bool:
    root = name.split(".")[0]
    return root in sys.stdlib_module_names or root in ("pydantic", "annotated_types", "typing_extensions")
