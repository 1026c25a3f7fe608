"""`launch cloud_build`: cloudbuild.yaml on the working tree as it is, without a merge and without a trigger."""

import argparse
import shlex
import shutil
import subprocess

from launch import project
from launch.bootstrap import settings
from launch.errors import LaunchError
from launch.image import names as image_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `launch cloud_build`."""
    parser.add_argument("--dry_run", action="store_true", help="print the command and run nothing")
    parser.add_argument("--wait", action="store_true", help="stay until the build ends; its success is the exit code")
    parser.add_argument("--tag", default="", help="of the images; default: the commit, with -dirty where it is")
    parser.add_argument("--test_args", default="", help="for pytest in the build's first step, e.g. tests/trainer")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of project.env")


def run(options: argparse.Namespace) -> int:
    """Send the tree and start the build; gcloud prints where its log is. Its exit code is passed on, as 0 or 1."""
    values = project.variables("cloudbuild", project.overrides(options.set), ask_gcloud=not options.dry_run)
    names = settings.names(values, verb="cloud_build")
    command = submission(names, options.tag or image_names.commit(project.ROOT)[0], options.test_args, options.wait)
    if options.dry_run:
        print(shlex.join(command))
        return 0
    if not shutil.which("gcloud"):
        raise LaunchError(
            "cloud_build: gcloud is not on the PATH. Install it: https://cloud.google.com/sdk/docs/install"
        )
    return int(subprocess.run(command, cwd=project.ROOT).returncode != 0)


def submission(names: settings.Names, image_tag: str, test_args: str = "", wait: bool = False) -> list[str]:
    """The gcloud command. The smoke job is for merges to main, so that _SMOKE stays as the file has it."""
    filled = {key: value for key, value in names.substitutions.items() if key != "_SMOKE"}
    filled |= {"_TAG": image_tag} | ({"_TEST_ARGS": test_args} if test_args else {})
    # gcloud's own way to have commas in values: a delimiter of one's choice.
    substitutions = "^;^" + ";".join(f"{key}={value}" for key, value in filled.items())
    return [
        *("gcloud", "builds", "submit", f"--project={names.project}", f"--region={names.region}"),
        *("--config=cloudbuild.yaml", f"--substitutions={substitutions}"),
        f"--service-account=projects/{names.project}/serviceAccounts/{names.build}",
        f"--gcs-source-staging-dir=gs://{names.bucket}/source",
        # The log is in Cloud Logging, from where this command does not stream.
        "--suppress-logs" if wait else "--async",
        ".",
    ]
