"""`python -m launch image ACTION [cpu|gpu|tpu]`: build, try and push the images. The Makefile's front for it.

Build and push act on one record, .cache/image.json: {"architecture", "image", "digest"}. build writes it with
digest null, push fills the digest in, and submit reads it: `make build-gpu push submit` needs no names.
"""

import argparse

from launch.image.names import KINDS

ACTIONS = {
    "build": "build the image of Dockerfile.KIND, tagged with the commit",
    "push": "push the image built last (or of KIND) and record its digest",
    "push-base": "push the stage `tensorflow` of Dockerfile.KIND, for other repositories to build on",
    "test": "run the trainer in the image as a job would: read-only, not root, no network, no capabilities",
    "shell": "open a shell in the image",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, and the architecture where it is not the one built last."""
    actions = "; ".join(f"{name}: {what}" for name, what in ACTIONS.items())
    parser.add_argument("action", choices=ACTIONS, help=actions)
    parser.add_argument("kind", nargs="?", choices=KINDS, help="the architecture; by default the one built last")


# `image test` hands what follows `--` to the trainer.
TRAINER_ARGS = True


def run(options: argparse.Namespace) -> int:
    """Do one action; raises LaunchError with a sentence where it can't be done."""
    from launch.image import build, push, trial

    if options.action == "build":
        return build.build(build.kind_or_last(options.kind))
    if options.action == "push":
        return push.push(options.kind)
    if options.action == "push-base":
        return push.push_base(build.kind_or_last(options.kind))
    if options.action == "test":
        return trial.test(options.kind, options.trainer_args)
    return trial.shell(options.kind)
