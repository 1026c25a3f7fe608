"""Run every check at once, each with a time-out, and make a finding of whatever goes wrong with one."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable

from launch.checks import Check
from launch.preflight.account import Account
from launch.preflight.cloud import Cloud
from launch.preflight.job import Job
from launch.preflight.request import Trouble

# Of all the time, what gcloud may take to give its account: 1 to 2 s on an idle machine, four times that on a busy one.
# The requests after it run side by side and take less than a second together.
SIGN_IN_SHARE = 0.8
SUBJECTS = ("packages", "strategy", "permissions", "security", "memory", "numerics", "capacity")


@dataclasses.dataclass(frozen=True)
class Probe:
    """One thing to look at; `look` takes the job, and the cloud too where `online`, and gives its findings."""

    subject: str
    name: str
    look: Callable[..., Iterable[Check]]
    online: bool = False


class Running:
    """A probe on a thread of its own, which the process doesn't wait for when it ends."""

    def __init__(self, probe: Probe, *given: object):
        self.probe = probe
        self.found: list[Check] | None = None
        self._thread = threading.Thread(target=self._run, args=given, daemon=True, name=probe.name)
        self._thread.start()

    def _run(self, *given: object) -> None:
        self.found = looked(self.probe, *given)

    def result(self, deadline: float) -> list[Check]:
        """The findings, or one `unknown` if there are none by the deadline."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self.found is None:
            trouble = Trouble("late", "no answer in the time given")
            return [told(self.probe, trouble)]
        return self.found


def looked(probe: Probe, *given: object) -> list[Check]:
    """A probe's findings, with its subject; trouble on the way is a finding too."""
    try:
        found = list(probe.look(*given))
    except Trouble as trouble:
        found = [told(probe, trouble)]
    except TimeoutError:
        found = [told(probe, Trouble("late", "no whole answer in the time given"))]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        # an answer in a shape that is not documented must not take the other checks with it
        found = [told(probe, Trouble("other", f"an answer could not be read ({type(error).__name__}: {error})"))]
    return [dataclasses.replace(check, subject=probe.subject) for check in found]


def told(probe: Probe, trouble: Trouble) -> Check:
    """What a request without a good answer means for its check."""
    status, fix, command = ADVICE[trouble.kind]
    service = trouble.asked.split(" ", 1)[0] if trouble.asked else "SERVICE"
    found = f"{trouble.asked}: {trouble.detail}" if trouble.asked else trouble.detail
    return Check(probe.name, status, found, fix, command.replace("SERVICE", service), probe.subject)


# kind of trouble -> (status, what to do, command)
ADVICE: dict[str, tuple[str, str, str]] = {
    "denied": (
        "unknown",
        "gcloud's account may not look at this; ask for a role that may, or let somebody who has one run preflight",
        "gcloud projects get-iam-policy $PROJECT",
    ),
    "perimeter": (
        "failure",
        "a VPC Service Controls perimeter refused this request: run from inside it, or have the access level or "
        "ingress rule changed; the id is what its administrators look up",
        "gcloud logging read 'protoPayload.metadata.@type:\"VpcServiceControlAuditMetadata\"' --freshness=1h",
    ),
    "missing": ("failure", "Google knows nothing by that name: see that it is spelled right and was made", ""),
    "limited": ("unknown", "Google asks for patience (rate limit or overload): try again in a minute", ""),
    "disabled": ("failure", "the API is off in this project", "gcloud services enable SERVICE.googleapis.com"),
    "credentials": ("failure", "sign in, and again where the sign-in is stale", "gcloud auth login"),
    "late": ("unknown", "try again, with more time", "make preflight ARGS=--timeout_s=30"),
    "unreachable": ("unknown", "see that this machine reaches Google: network, proxy, DNS", ""),
    "other": ("unknown", "the answer was none that is documented; try again, then look it up", ""),
}


def run(
    probes: Iterable[Probe],
    read: Callable[[Account | None], Job],
    sign_in: Callable[[float], Account] | None,
    timeout_s: float,
) -> list[Check]:
    """The findings of all probes, in at most `timeout_s`; `sign_in` None: offline only.

    `sign_in` is given the seconds that it may take; `read` gives the job, filled in with what the account knows
    (its project, say) where there is one.
    """
    deadline = time.monotonic() + timeout_s
    probes = list(probes)
    job = dataclasses.replace(read(None), until=deadline - 0.5)
    running = [Running(probe, job) for probe in probes if not probe.online]
    found: list[Check] = []
    online = [probe for probe in probes if probe.online and sign_in]
    if online:
        try:
            account = sign_in(SIGN_IN_SHARE * timeout_s)
            job = dataclasses.replace(read(account), until=deadline - 0.5)
            cloud = Cloud(account, deadline - 0.5, job.region)
            running += [Running(probe, job, cloud) for probe in online]
        except Trouble as trouble:
            found.append(told(Probe("permissions", "account", lambda: ()), trouble))
    for one in running:
        found += one.result(deadline)
    return sorted(found, key=lambda check: SUBJECTS.index(check.subject))
