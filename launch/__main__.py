"""`python -m launch VERB`: one verb a module, imported only when it is asked for."""

import argparse
import importlib
import os
import sys

from launch.errors import LaunchError

# verb -> (module, what it does), in the order of use; the module has add_arguments(parser) and
# run(options) -> exit code.
VERBS: dict[str, tuple[str, str]] = {
    "bootstrap": ("launch.bootstrap", "set a project up: APIs, repository, bucket, accounts and roles, trigger"),
    "image": ("launch.image", "build, try and push the images for cpu, gpu and tpu"),
    "validate": ("launch.validate", "everything wrong with job files, at once and offline"),
    "local": ("launch.local", "run a job file here, every replica of it, as Vertex AI would"),
    "tune": ("launch.study.tune", "run a tuning job here, trial by trial"),
    "refine": ("launch.study.refine", "write the next tuning job, from what a study found"),
    "package": ("launch.package", "the trainer as an sdist on Cloud Storage, for configs/python_package.yaml"),
    "cloud_build": ("launch.cloud_build", "run cloudbuild.yaml on the working tree: test, build, try, push"),
    "fill": ("launch.fill", "a job file with its variables filled in, for gcloud's --config"),
    "preflight": ("launch.preflight", "say what would fail in the cloud, before it costs anything"),
    "submit": ("launch.submit", "send a job file to Vertex AI, validated and shown first"),
    "watch": ("launch.watch", "a job's states, log and trials until its end"),
    "cancel": ("launch.cancel", "ask for a job's end"),
    "list": ("launch.listing", "the newest jobs and studies"),
    "diagnose": ("launch.diagnose", "what made a job fail, said from its log"),
    "demo": ("launch.diagnose.demo", "provoke one of the seven failures here, and see what is said about it"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one verb; the exit code is the verb's own, 2 where the command line can't be read."""
    argv = sys.argv[1:] if argv is None else argv
    argv, trainer_args = _split(argv)
    verb = argv[0] if argv and argv[0] in VERBS else None
    parser = argparse.ArgumentParser(prog="python -m launch", description="Run, check and submit job files.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (module, summary) in VERBS.items():
        subparser = verbs.add_parser(name, help=summary, description=summary)
        if name == verb:
            importlib.import_module(module).add_arguments(subparser)
    options = parser.parse_args(argv, argparse.Namespace(trainer_args=trainer_args))
    module = importlib.import_module(VERBS[options.verb][0])
    if trainer_args and not getattr(module, "TRAINER_ARGS", False):
        parser.error(f"{options.verb} takes nothing after --; {' '.join(trainer_args)} came")
    try:
        return module.run(options)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `launch list | head`: whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a folder that may not be written
        place = f"{error.filename}: " if error.filename else ""
        print(f"launch {options.verb}: {place}{error.strerror or error}", file=sys.stderr)
        return 1


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """The verb's own arguments, and what comes after `--`, which argparse mixes up."""
    place = argv.index("--") if "--" in argv else len(argv)
    return argv[:place], argv[place + 1 :]


if __name__ == "__main__":
    sys.exit(main())
