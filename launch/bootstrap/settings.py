"""The names of everything that bootstrap makes, worked out and checked before gcloud is asked for anything."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from launch import project
from launch.errors import LaunchError

NEEDED = ("PROJECT", "REGION", "REPOSITORY", "BUCKET", "NAME")
_ACCOUNT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")  # IAM's own rule: 6 to 30 characters
_GITHUB = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_CONNECTED = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/connections/[^/]+/repositories/[^/]+")


@dataclass(frozen=True)
class Names:
    """What there will be. Accounts are e-mail addresses; `github` is "" where no trigger is asked for."""

    project: str
    region: str
    repository: str
    bucket: str
    name: str
    training: str
    build: str
    github: str = ""
    smoke: bool = False
    tensorboard: str = ""

    @property
    def trigger(self) -> str:
        """The trigger's name."""
        return f"{self.name}-main"

    @property
    def trigger_region(self) -> str:
        """Where the trigger lives: where its connection does; the older kind, OWNER/NAME, is global."""
        match = _CONNECTED.fullmatch(self.github)
        return match["region"] if match else "global"

    @property
    def substitutions(self) -> dict[str, str]:
        """What the trigger fills in; $SHORT_SHA is Cloud Build's, the commit that was merged."""
        values = {
            "_REGION": self.region,
            "_REPOSITORY": self.repository,
            "_NAME": self.name,
            "_BUCKET": self.bucket,
            "_BUILD_ACCOUNT": self.build,
            "_TRAINING_ACCOUNT": self.training,
            "_TAG": "$SHORT_SHA",
            "_SMOKE": "true" if self.smoke else "false",
        }
        return {key: value for key, value in values.items() if value}


def names(values: Mapping[str, str], github: str = "", smoke: bool = False, verb: str = "bootstrap") -> Names:
    """The names, from the settings in project.env; LaunchError says all that is missing or can't be used."""
    if absent := [name for name in NEEDED if not values.get(name)]:
        raise LaunchError(f"{verb}: {project.missing(absent)}")
    home = f"@{values['PROJECT']}.iam.gserviceaccount.com"
    training = values.get("SERVICE_ACCOUNT") or f"{values['NAME']}-train{home}"
    found = Names(
        project=values["PROJECT"],
        region=values["REGION"],
        repository=values["REPOSITORY"],
        bucket=values["BUCKET"].removeprefix("gs://").rstrip("/"),
        name=values["NAME"],
        training=training,
        build=f"{values['NAME']}-build{home}",
        github=github.removeprefix("https://github.com/").removesuffix(".git"),
        smoke=smoke,
        tensorboard=values.get("TENSORBOARD", ""),
    )
    if problems := list(_problems(found, home)):
        raise LaunchError("\n".join(f"{verb}: {problem}" for problem in problems))
    return found


def _problems(found: Names, home: str):
    if not found.training.endswith(home):
        yield (
            f"SERVICE_ACCOUNT={found.training} came. Expected: an account of this project, NAME{home}, or an empty"
            " SERVICE_ACCOUNT to have one made. An account of another project is given its roles there"
        )
    for account in (found.training, found.build):
        given = account.partition("@")[0]
        if account.endswith(home) and not _ACCOUNT.fullmatch(given):
            yield (
                f"{given!r} can't be a service account's name. Expected: 6 to 30 of a-z, 0-9 and -, beginning with"
                " a letter. Fix: change NAME in project.env"
            )
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", found.bucket):
        yield f"BUCKET={found.bucket} came. Expected: 3 to 63 of a-z, 0-9, -, _ and ., without gs:// and folders"
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", found.repository):
        yield f"REPOSITORY={found.repository} came. Expected: at most 63 of a-z, 0-9 and -, beginning with a letter"
    if found.github and not (_GITHUB.fullmatch(found.github) or _CONNECTED.fullmatch(found.github)):
        yield (
            f"--github={found.github} came. Expected: OWNER/NAME of a repository that is connected to Cloud Build,"
            " or projects/P/locations/R/connections/C/repositories/NAME"
        )
