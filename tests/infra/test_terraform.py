"""Terraform says what bootstrap does. Its provider is not needed: what can be evaluated without it, is.

Edge: the names of the provider's resources and attributes are checked by `terraform validate` only where
the provider can be downloaded; the last test does that there and looks at the reason elsewhere.
"""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from launch.bootstrap import plan, roles, settings

INFRA = pathlib.Path(__file__).resolve().parents[2] / "infra"
VALUES = {
    "PROJECT": "my-project",
    "REGION": "us-central1",
    "REPOSITORY": "trainyard",
    "BUCKET": "my-bucket",
    "NAME": "digits",
}
pytestmark = pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed")


def terraform(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")} | {"CHECKPOINT_DISABLE": "1"}
    return subprocess.run(
        ["terraform", f"-chdir={folder}", *arguments], capture_output=True, text=True, env=environment
    )


def evaluated(module, tmp_path, **variables):
    """A module's outputs, applied: it has no resources, so nothing is made."""
    folder = tmp_path / module.name
    shutil.copytree(module, folder)
    (folder / "terraform.tfvars.json").write_text(json.dumps(variables))
    for arguments in (["init", "-backend=false"], ["apply", "-auto-approve", "-input=false"]):
        done = terraform(folder, *arguments)
        assert done.returncode == 0, done.stderr
    outputs = json.loads(terraform(folder, "output", "-json").stdout)
    return {name: output["value"] for name, output in outputs.items()}


def test_the_files_are_formatted():
    done = terraform(INFRA, "fmt", "-check", "-recursive", "-diff")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_apis_are_those_of_bootstrap(tmp_path):
    assert set(evaluated(INFRA / "wanted" / "apis", tmp_path)["names"]) == set(roles.APIS)


@pytest.mark.parametrize("all_of_it", [False, True])
def test_the_roles_and_the_trigger_are_those_of_bootstrap(tmp_path, all_of_it):
    tensorboard = {"TENSORBOARD": "some"} if all_of_it else {}
    names = settings.names(VALUES | tensorboard, smoke=all_of_it)
    given = evaluated(
        INFRA / "wanted",
        tmp_path,
        training_account=names.training,
        build_account=names.build,
        project_number="42",
        region=names.region,
        repository=names.repository,
        bucket=names.bucket,
        name=names.name,
        tensorboard=all_of_it,
        smoke=all_of_it,
        agent=True,
    )
    found = {(on, g["role"], g["member"]) for on, grants in given["grants"].items() for g in grants.values()}
    asked = [grant for grant in roles.GRANTS if all_of_it or not grant.needs]
    assert found == {(grant.on, grant.role, plan.member(names, grant.who, "42")) for grant in asked}
    assert given["substitutions"] == names.substitutions


def test_the_whole_reads_and_is_valid_where_the_provider_is_to_be_had(tmp_path):
    folder = tmp_path / "infra"
    shutil.copytree(INFRA, folder, ignore=shutil.ignore_patterns(".terraform*"))
    started = terraform(folder, "init", "-backend=false", "-input=false", "-no-color")
    if started.returncode == 0:
        checked = terraform(folder, "validate", "-no-color")
        assert checked.returncode == 0, checked.stderr
    else:
        # every file was read and every module found before the provider was looked for
        assert "Failed to query available provider packages" in started.stderr
        assert "Terraform encountered problems during initialisation" not in started.stderr
