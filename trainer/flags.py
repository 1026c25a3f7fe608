"""The command line: flags from the fields of Settings and of model.py's Hyperparameters.

Underscores (`--learning_rate`), `--flag=value` or `--flag value`, the later one wins: so does the tuning
service pass them. Every problem is told at once, one sentence each, with exit code 2.
"""

import dataclasses
import difflib
import functools
import json
import sys
from typing import Any

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from trainer.problems import FlagError, Problem
from trainer.settings import Settings, _whole, adapted, combinations
from trainer.yours import data_dir, hyperparameters_class


@functools.cache  # making a schema takes 10 ms, and a study asks about hundreds of command lines
def _fields(cls: type) -> dict[str, dict[str, Any]]:
    """name -> JSON schema of every field, in order."""
    try:
        schema = TypeAdapter(cls).json_schema()
    except PydanticUserError as error:
        wanted = f"a dataclass or pydantic model of numbers, strings and booleans is expected: {error.message}"
        raise FlagError([Problem("", None, f"trainer/model.py: {cls.__name__}: {wanted}".split("\n")[0])]) from None
    definitions = schema.get("$defs", {})
    fields = {}
    for name, field in schema.get("properties", {}).items():
        reference = field.get("$ref", "").rpartition("/")[2]
        fields[name] = {**definitions.get(reference, {}), **field}
    return fields


def known_flags(hyperparameters: type) -> dict[str, dict[str, Any]]:
    """Every flag by field name: the trainer's, then the model's own (group Model)."""
    flags = dict(_fields(Settings))
    if (own := data_dir()) is not None:
        flags["data_dir"] = {**flags["data_dir"], "default": own}
    for name, field in _fields(hyperparameters).items():
        if name in flags:
            message = f"Hyperparameters.{name} has the name of one of the trainer's own flags; call it otherwise"
            raise FlagError([Problem(f"--{name}", None, message)])
        flags[name] = {**field, "group": "Model"}
    return flags


def _split(arguments: list[str], flags: dict[str, dict]) -> tuple[dict[str, tuple[int, str]], list[Problem]]:
    """name -> (index, text) of the flags that came, and what can't be read."""
    came, problems, index = {}, [], 0
    while index < len(arguments):
        start, argument = index, arguments[index]
        index += 1
        if not argument.startswith("--"):
            problems.append(Problem(argument, start, f"{argument!r} came where a flag such as --epochs=3 was expected"))
            continue
        name, equals, text = argument[2:].partition("=")
        if name not in flags:
            close = difflib.get_close_matches(name.replace("-", "_"), flags, 1)
            hint = f"; did you mean --{close[0]}?" if close else "; --help lists them"
            problems.append(Problem(f"--{name}", start, f"--{name} is not a flag of this trainer{hint}"))
            index += not equals and index < len(arguments) and not arguments[index].startswith("--")
            continue
        if not equals:
            if index < len(arguments) and not arguments[index].startswith("--"):
                text = arguments[index]
                index += 1
            elif flags[name].get("type") == "boolean":
                text = "true"
            else:
                problems.append(Problem(f"--{name}", start, f"--{name} came without a value"))
                continue
        came[name] = (start, text)
    return came, problems


def _build(cls: type, values: dict[str, Any], came: dict[str, tuple[int, str]], problems: list[Problem]) -> Any:
    try:
        return TypeAdapter(cls).validate_python(values, strict=False)
    except ValidationError as error:
        for detail in error.errors():
            name = str(detail["loc"][0]) if detail["loc"] else ""
            index, text = came.get(name, (None, ""))
            expected = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
            if detail["type"] == "string_pattern_mismatch":
                expected = f"expected {_fields(cls)[name]['description']}"
            problems.append(Problem(f"--{name}", index, f"--{name}={text}: {expected}"))
        return None


def examine(
    arguments: list[str], replicas: int | None = None, hyperparameters: type | None = None
) -> tuple[Settings | None, Any, list[Problem]]:
    """(settings, hyperparameters, problems) of a command line; the first two are None where they can't be built."""
    hyperparameters = hyperparameters or hyperparameters_class()
    flags = known_flags(hyperparameters)
    came, problems = _split(arguments, flags)
    texts = {name: _whole(text) if flags[name].get("type") == "integer" else text for name, (_, text) in came.items()}
    own = Settings.model_fields.keys()
    given = {"data_dir": flags["data_dir"]["default"]} | {n: t for n, t in texts.items() if n in own}
    settings = _build(Settings, given, came, problems)
    model = _build(hyperparameters, {n: t for n, t in texts.items() if n not in own}, came, problems)
    if settings is not None:
        settings = adapted(settings)
        for flag, message in combinations(settings, replicas):
            problems.append(Problem(flag, came.get(flag[2:], (None,))[0], message))
    return settings, model, problems


def parse(arguments: list[str]) -> tuple[Settings, Any]:
    """Settings and hyperparameters of a command line. Raises FlagError with every problem."""
    settings, hyperparameters, problems = examine(arguments)
    if problems:
        raise FlagError(problems)
    return settings, hyperparameters


def as_dict(hyperparameters: Any) -> dict[str, Any]:
    """A dataclass or a pydantic model as a plain dict."""
    if isinstance(hyperparameters, BaseModel):
        return hyperparameters.model_dump(mode="json")
    return dataclasses.asdict(hyperparameters)


def help_text() -> str:
    """--help: the flags by group."""
    lines, group = ["usage: python -m trainer.task [--flag=value ...]"], None
    for name, field in known_flags(hyperparameters_class()).items():
        if field.get("group") != group:
            group = field.get("group")
            lines += ["", group]
        choices = "|".join(map(str, field.get("enum", []))) or field.get("type", "value")
        default = field.get("default", "required")
        lines.append(f"  --{name}={choices}")
        lines.append(f"      {field.get('description', '')} [{default if default != '' else 'none'}]")
    return "\n".join(lines)


def answer(arguments: list[str]) -> int:
    """What the launcher asks of the flags: `--check` (job arguments as JSON on stdin) or `--schema`."""
    try:
        if arguments == ["--schema"]:
            flags = known_flags(hyperparameters_class())
            keep = (
                "type",
                "enum",
                "default",
                "group",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
            )
            rows = [
                {"name": f"--{name}", "help": field.get("description", "")} | {k: field[k] for k in keep if k in field}
                for name, field in flags.items()
            ]
            print(json.dumps({"flags": rows}))
        elif arguments == ["--check"]:
            model = hyperparameters_class()
            print(json.dumps([_checked(model, **job) for job in json.load(sys.stdin)]))
        else:
            print("usage: python -m trainer.settings --schema | --check < jobs.json", file=sys.stderr)
            return 2
    except FlagError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _checked(model: type, args: list[str], replicas: int | None = None) -> list[dict[str, Any]]:
    problems = examine(args, replicas, model)[2]
    return [{"flag": p.flag, "arg_index": p.index, "message": p.message} for p in problems]
