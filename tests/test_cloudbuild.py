"""cloudbuild.yaml: what the API takes, what its steps say, and what it would refuse. Running it: tests/images."""

import pathlib
import re
import threading

import pytest
import yaml
from google.cloud.devtools.cloudbuild_v1 import Build
from google.protobuf import json_format

from launch.bootstrap import settings
from launch.image import engine, names, trial
from tests import cloudbuild

FILE = pathlib.Path(__file__).resolve().parents[1] / "cloudbuild.yaml"
ARCHITECTURES = ("cpu", "gpu", "tpu")
HERE = {"PROJECT_ID": "my-project", "BUILD_ID": "b-1"}


@pytest.fixture(scope="module")
def build():
    return cloudbuild.read(FILE)


@pytest.fixture(scope="module")
def filled(build):
    return cloudbuild.substituted(build, {"_TAG": "abc1234"}, HERE)


def step(build, name):
    return next(step for step in build.steps if step.id == name)


def test_the_keys_are_those_of_the_rest_api():
    """camelCase: the API's types take snake_case too, a trigger's reader may not."""

    def keys(node):
        if isinstance(node, dict):
            yield from node
            for key, value in node.items():
                if key != "substitutions":
                    yield from keys(value)
        elif isinstance(node, list):
            for value in node:
                yield from keys(value)

    raw = yaml.safe_load(FILE.read_text())
    assert [key for key in keys(raw) if "_" in key and not key.startswith("_")] == []


def test_the_types_refuse_what_the_api_refuses():
    for wrong in ({"bogus": 1}, {"options": {"logging": "CLOUD"}}, {"timeout": "1h"}, {"steps": [{"arg": []}]}):
        with pytest.raises(json_format.ParseError):
            json_format.ParseDict(wrong, Build.pb()())


def test_an_account_of_its_own_and_its_log_in_cloud_logging(filled):
    assert (
        filled.service_account == "projects/my-project/serviceAccounts/digits-build@my-project.iam.gserviceaccount.com"
    )
    assert filled.options.logging.name == "CLOUD_LOGGING_ONLY"


def test_tests_first_then_three_builds_at_once_and_none_pushed_before_all_are_tried(build):
    graph = cloudbuild.waits(build)
    assert graph["test"] == set()
    for name in ARCHITECTURES:
        assert graph[f"build-{name}"] == {"test"}
        assert graph[f"try-{name}"] == {f"build-{name}"}
        assert graph[f"push-{name}"] == {"try-cpu", "try-gpu", "try-tpu"}
    assert graph["smoke-file"] == {"push-cpu", "push-gpu", "push-tpu"}
    assert graph["smoke"] == {"smoke-file"}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_image_starts_from_the_cache_that_the_build_before_pushed(filled, name):
    arguments = list(step(filled, f"build-{name}").args)
    cache = f"us-central1-docker.pkg.dev/my-project/trainyard/digits-{name}:cache"
    assert f"--cache-from={cache}" in arguments
    assert f"--tag={cache}" in arguments
    assert "--build-arg=BUILDKIT_INLINE_CACHE=1" in arguments
    assert f"--file=Dockerfile.{name}" in arguments
    assert list(step(filled, f"build-{name}").env) == ["DOCKER_BUILDKIT=1"]
    assert "--all-tags" in step(filled, f"push-{name}").args[1]
    assert f"us-central1-docker.pkg.dev/my-project/trainyard/digits-{name}:abc1234" in filled.images


def test_the_three_are_told_apart_by_their_architecture_alone(build):
    for kind in ("build", "try", "push"):
        alike = set()
        for name in ARCHITECTURES:
            fields = json_format.MessageToJson(cloudbuild.Build.pb(build), sort_keys=True)
            found = next(s for s in yaml.safe_load(fields)["steps"] if s["id"] == f"{kind}-{name}")
            found.pop("waitFor")
            found["args"] = [argument for argument in found["args"] if not argument.startswith("--env=TPU_")]
            alike.add(re.sub(rf"(?<=[-./]){name}\b", "ARCH", str(found)))
        assert len(alike) == 1, alike


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_image_is_tried_as_make_image_test_tries_it_and_named_as_make_push_names_it(filled, name, monkeypatch):
    monkeypatch.delenv("REGISTRY", raising=False)
    monkeypatch.setattr(engine, "gpu_arguments", list)  # Cloud Build's machines have none
    values = {"PROJECT": "my-project", "REGION": "us-central1", "REPOSITORY": "trainyard", "NAME": "digits"}
    image = names.image_name(name, values, "abc1234")
    assert list(step(filled, f"try-{name}").args) == [*trial.test_arguments(name, image), *trial.STEPS]
    assert image in filled.images


def test_every_step_is_an_image_with_a_version(build):
    for used in build.steps:
        name, _, tag = used.name.rpartition(":")
        assert name, used.name
        assert tag != "latest"


def test_the_trigger_that_bootstrap_makes_fills_in_what_the_file_has(build):
    values = {"PROJECT": "p-1", "REGION": "europe-west4", "REPOSITORY": "images", "BUCKET": "bucket", "NAME": "other"}
    given = settings.names(values, smoke=True).substitutions
    triggered = cloudbuild.substituted(build, given, {"PROJECT_ID": "p-1", "SHORT_SHA": "1234567"})
    assert "europe-west4-docker.pkg.dev/p-1/images/other-gpu:1234567" in triggered.images
    assert triggered.service_account.endswith("/other-build@p-1.iam.gserviceaccount.com")


def test_unknown_and_unused_variables_are_refused_as_cloud_build_does(build):
    with pytest.raises(cloudbuild.SubstitutionError, match="_NO"):
        cloudbuild.substituted(build, {"_NO": "x"}, HERE)
    raw = Build.pb()()
    json_format.ParseDict({"steps": [{"name": "a", "args": ["$_A $$HOME ${PROJECT_ID}$BRANCH_NAME"]}]}, raw)
    with pytest.raises(cloudbuild.SubstitutionError, match="no value for _A"):
        cloudbuild.substituted(Build.wrap(raw), {}, HERE)
    raw.substitutions.update({"_A": "${_B}", "_B": "b", "_C": ""})
    with pytest.raises(cloudbuild.SubstitutionError, match="never used"):
        cloudbuild.substituted(Build.wrap(raw), {}, HERE)
    del raw.substitutions["_C"]
    assert cloudbuild.substituted(Build.wrap(raw), {}, HERE).steps[0].args == ["b $HOME my-project"]


def graph(**steps):
    fields = [{"id": name, "name": "image", "waitFor": wait} for name, wait in steps.items()]
    raw = Build.pb()()
    json_format.ParseDict({"steps": fields}, raw)
    return Build.wrap(raw)


def test_the_runner_runs_side_by_side_what_may_and_in_order_what_must():
    both = threading.Barrier(2, timeout=60)

    def execute(step):
        if step.id in ("left", "right"):
            both.wait()  # passes only if the two run at once

    ended = cloudbuild.run(graph(first=[], left=["first"], right=["first"], last=[]), execute)
    assert ended[0] == "first"
    assert set(ended[1:3]) == {"left", "right"}
    assert ended[3] == "last"


def test_the_runner_begins_nothing_that_waits_for_a_failed_step():
    seen = []

    def execute(step):
        seen.append(step.id)
        if step.id == "try":
            raise cloudbuild.StepError("no")

    with pytest.raises(cloudbuild.StepError):
        cloudbuild.run(graph(build=["-"], **{"try": ["build"]}, push=["try"]), execute)
    assert seen == ["build", "try"]
    with pytest.raises(ValueError, match="which no step before"):
        cloudbuild.waits(graph(a=["b"], b=[]))
