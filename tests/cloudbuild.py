"""Run a cloudbuild.yaml here, step by step, as Cloud Build does: for tests.

The file is read into google-cloud-build's own Build, which refuses what the API does. Substitutions follow Cloud
Build's rules: `$$` is a dollar, a name of its own (PROJECT_ID, BRANCH_NAME ...) without a value is empty, and a
user's (`_NAME`) must be defined and used, because MUST_MATCH is what a build by hand gets.
"""

import concurrent.futures
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml
from google.cloud.devtools.cloudbuild_v1 import Build
from google.protobuf import json_format

BUILT_IN = """
    PROJECT_ID PROJECT_NUMBER LOCATION BUILD_ID REPO_NAME REPO_FULL_NAME BRANCH_NAME TAG_NAME REVISION_ID COMMIT_SHA
    SHORT_SHA TRIGGER_NAME TRIGGER_BUILD_CONFIG_PATH SERVICE_ACCOUNT SERVICE_ACCOUNT_EMAIL
"""
_REFERENCE = re.compile(r"\$(?:(\$)|\{([A-Z_][A-Z0-9_]*)\}|([A-Z_][A-Z0-9_]*))")


class SubstitutionError(ValueError):
    """A variable that Cloud Build would refuse the build for."""


class StepError(RuntimeError):
    """A step failed, and with it the build."""


def read(file: Path) -> Build:
    """The build that a file describes; json_format.ParseError for anything that the API has no field for."""
    raw = Build.pb()()
    json_format.ParseDict(yaml.safe_load(file.read_text()), raw)
    return Build.wrap(raw)


def substituted(build: Build, given: Mapping[str, str], built_in: Mapping[str, str]) -> Build:
    """A copy with every variable filled in; substitutions may name each other (dynamicSubstitutions)."""
    if unknown := sorted(set(given) - set(build.substitutions)):
        raise SubstitutionError(f"not in the file: {unknown}")
    values = {name: built_in.get(name, "") for name in BUILT_IN.split()} | dict(build.substitutions) | dict(given)
    used = {match[2] or match[3] for text in build.substitutions.values() for match in _REFERENCE.finditer(text)}

    def fill(text: str) -> str:
        def value(match: re.Match) -> str:
            if match[1]:
                return "$"
            name = match[2] or match[3]
            if name not in values:
                raise SubstitutionError(f"no value for {name} in {text!r}")
            used.add(name)
            return fill(values[name])

        return _REFERENCE.sub(value, text)

    def walk(node):
        if isinstance(node, dict):
            return {key: walk(value) for key, value in node.items()}
        if isinstance(node, list):
            return [walk(value) for value in node]
        return fill(node) if isinstance(node, str) else node

    fields = json_format.MessageToDict(Build.pb(build))
    fields.pop("substitutions", None)
    filled = walk(fields)
    if unused := sorted(set(build.substitutions) - used):
        raise SubstitutionError(f"never used: {unused}")
    raw = Build.pb()()
    json_format.ParseDict(filled, raw)
    return Build.wrap(raw)


def waits(build: Build) -> dict[str, set[str]]:
    """Which steps each step waits for: the named ones; `-` is none; nothing said is all before it."""
    names = [step.id or f"step {place}" for place, step in enumerate(build.steps)]
    graph: dict[str, set[str]] = {}
    for name, step in zip(names, build.steps, strict=True):
        asked = set(step.wait_for)
        graph[name] = set(graph) if not asked else asked - {"-"}
        if missing := graph[name] - set(names[: names.index(name)]):
            raise ValueError(f"{name} waits for {sorted(missing)}, which no step before it is called")
    return graph


def run(build: Build, execute: Callable[[object], None]) -> list[str]:
    """Execute every step once those that it waits for are done, side by side; the order in which they ended.

    `execute(step)` raises StepError where the step fails; what has not begun by then does not begin.
    """
    graph = waits(build)
    steps = dict(zip(graph, build.steps, strict=True))
    ended: list[str] = []
    lock = threading.Lock()

    def one(name: str) -> str:
        execute(steps[name])
        with lock:
            ended.append(name)
        return name

    begun: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(len(steps)) as pool:
        running: set[concurrent.futures.Future] = set()
        while len(ended) < len(steps):
            for name in [name for name in graph if name not in begun and graph[name] <= set(ended)]:
                begun.add(name)
                running.add(pool.submit(one, name))
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                future.result()
    return ended
