"""What the tests of preflight share: a look at one of the shipped configs, or a changed one, in the small cloud."""

import re

from launch import preflight, project
from launch.preflight.account import Account
from launch.preflight.job import Job
from launch.preflight.probe import run
from tests import google_world
from tests.google_world import VARIABLES
from tests.standin import APIS

HANG_S = 300
ONLINE = tuple(room for room in preflight.rooms() if any(probe.online for probe in room.PROBES))


def look(google, config, *rooms, timeout_s=HANG_S, path=None, **changed):
    """The findings of some rooms for one of the configs, as {name: check}; later ones of a name win if worse."""
    file = str(path or project.ROOT / "configs" / f"{config}.yaml")
    variables = {**project.variables(file, VARIABLES | changed)}
    overrides = dict.fromkeys(APIS, f"{google.api.address}/") if google else {}
    account = Account("token", "me@example.com", google_world.PROJECT, "", overrides)
    probes = [probe for room in rooms for probe in room.PROBES]
    checks = run(probes, lambda _: Job.read(file, variables), lambda _: account, timeout_s)
    order = ("ok", "unknown", "warning", "failure")
    found = {}
    for check in sorted(checks, key=lambda check: order.index(check.status)):
        found[check.name] = check
    return found


def bad(found):
    return {name: check.status for name, check in found.items() if check.status != "ok"}


def job_file(tmp_path, config, **flags):
    """A config with other flags: changed where they stand, else added to the last pool's."""
    text = (project.ROOT / "configs" / f"{config}.yaml").read_text()
    for name, value in flags.items():
        text, changed = re.subn(rf"--{name}=.*", f"--{name}={value}", text)
        if not changed:
            text = text.replace("scheduling:\n", f"    - --{name}={value}\nscheduling:\n", 1)
    path = tmp_path / f"{config}.yaml"
    path.write_text(text)
    return path
