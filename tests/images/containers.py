"""Running docker from a test."""

import os
import subprocess

HANG_S = 1800  # no limit on what may be slow, only an end to what hangs


def docker(*arguments, check=True, cwd=None):
    """Run docker; its two streams come back together as stdout."""
    ran = subprocess.run(
        ["docker", *arguments],
        cwd=cwd,
        env=os.environ | {"DOCKER_BUILDKIT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert not check or ran.returncode == 0, f"docker {arguments[0]} ended with {ran.returncode}:\n{ran.stdout[-6000:]}"
    return ran
