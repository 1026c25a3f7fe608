"""`submit --retry`: wait out what passes (a perimeter's change, a rate limit, a stockout), and nothing else.

1. What is permanent by diagnose's causes ends it at once, with what to do about it.
2. A stockout goes on to the next place of RETRY_PLACES at once, and waits when all have been tried.
3. A rate limit or a passing fault waits at the same place: 30 s, then twice as long each time, up to 5 minutes.
4. A perimeter that changed less than 15 minutes ago is waited for; a perimeter that did not change is permanent.
5. Only a job that FAILED is sent again, under the same name and to the same folder, so it resumes its checkpoints.
   A submission without an answer is looked up first: none is sent twice.
6. All of it ends at the bound (--retry_for, 6 h), and Ctrl-C ends the waiting, not the job.
"""

import dataclasses

from launch import remembered, vertex
from launch.errors import LaunchError
from launch.retry import places, reasons, waiting
from launch.retry.places import Place
from launch.retry.waiting import Clock
from launch.vertex import request

FIRST_WAIT_S, LONGEST_WAIT_S = 30.0, 300.0
ROUND_WAIT_S, LONGEST_ROUND_S = 300.0, 1800.0  # after every place was tried
POLL_S = 15.0
BOUND_S = 6 * 3600.0


def submit(made: request.Request, bound_s: float = BOUND_S, clock: Clock | None = None) -> vertex.Job:
    """Send a job until one runs (or has succeeded). Raises LaunchError with the reason where that can't be."""
    retry = _Retry(made, bound_s, clock or Clock())
    try:
        return retry.run()
    except KeyboardInterrupt:
        goes_on = f"; {retry.last.name} goes on, `launch cancel` ends it" if retry.last else ""
        raise LaunchError(f"no further tries{goes_on}", exit_code=130) from None


def wait_for_perimeter(checks: list, clock: Clock | None = None) -> list:
    """Preflight's findings without a change of a perimeter that is younger than 15 minutes: that is waited out."""
    clock = clock or Clock()
    for check in checks:
        if check.name == "perimeter change" and check.status == "failure" and check.command.startswith("sleep "):
            waiting.wait(clock, float(check.command.removeprefix("sleep ")), check.found)
    return [c for c in checks if not (c.name == "perimeter change" and c.command.startswith("sleep "))]


class _Retry:
    """One job on its way; `made` is the request as the file has it."""

    def __init__(self, made: request.Request, bound_s: float, clock: Clock):
        self.clock = clock
        self.until = clock.now() + bound_s
        own = Place(made.region)
        others = [place for place in places.configured() if place != own]
        # all of them are looked at before the first is tried: a mistake in the third shall not show at night
        self.candidates = [(own, made, []), *((place, *places.at(made, place)) for place in others)]
        self.waits = waiting.growing(FIRST_WAIT_S, LONGEST_WAIT_S)
        self.rounds = waiting.growing(ROUND_WAIT_S, LONGEST_ROUND_S)
        self.tried = 0
        self.last: vertex.Job | None = None

    def run(self) -> vertex.Job:
        turn = 0
        while True:
            place, made, remarks = self.candidates[turn % len(self.candidates)]
            self.tried += 1
            if self.tried > 1:
                self.clock.say(f"try {self.tried}: {place}" + "".join(f", {remark}" for remark in remarks))
            job, reason = self._try(made)
            if reason is None:
                return job
            if not reason.kind:
                raise LaunchError(_ended(reason, self.tried), exit_code=1)
            turn += self._after(reason, place, made, turn)

    def _after(self, reason: reasons.Reason, place: Place, made: request.Request, turn: int) -> int:
        """Wait as the reason asks; how many places to go on."""
        if reason.kind == "stockout":
            if (turn + 1) % len(self.candidates):
                self.clock.say(f"no capacity in {place}: {reason.said:.160}")
            else:
                where = f"in none of {len(self.candidates)} places" if len(self.candidates) > 1 else f"in {place}"
                self._pause(next(self.rounds), f"no capacity {where}")
            return 1
        if reason.kind == "perimeter":
            self._pause(perimeter_wait_s(made, reason), "a perimeter changed")
        else:
            self._pause(next(self.waits), f"{place}: {reason.said:.160}")
        return 0

    def _try(self, made: request.Request) -> tuple[vertex.Job | None, reasons.Reason | None]:
        """(the job, None) once it runs, or (None, why it didn't)."""
        try:
            job = request.submit_once(made)
        except vertex.GcloudError as error:
            reason = reasons.of(error.said)
            job = _sent(made) if reason.kind == "passing" or (not reason.kind and error.transient) else None
            if job is None:
                kind = reason.kind or ("passing" if error.transient and not reason.tip else "")
                return None, dataclasses.replace(reason, kind=kind)
        self.clock.say(f"submitted {job.name}")
        remembered.write("job.json", {"name": job.name})
        self.last = job
        found = self._started(job)
        self.last = None
        return found

    def _started(self, job: vertex.Job) -> tuple[vertex.Job | None, reasons.Reason | None]:
        """Wait until the job runs or has ended; asked again where there is no answer."""
        said = ""
        while True:
            try:
                described = vertex.describe(job)
            except vertex.GcloudError as error:
                if not error.transient:
                    raise
                described = {}
            state = vertex.state(described) if described else said
            if state != said:
                self.clock.say(f"{job.region}: {state}")
                said = state
            if state in ("RUNNING", "SUCCEEDED", "PARTIALLY_SUCCEEDED"):
                return job, None
            if state == "FAILED":
                return None, reasons.of((described.get("error") or {}).get("message", ""))
            if state in vertex.ENDED:
                return None, reasons.Reason("", f"the job is {state}")
            if self.clock.now() + POLL_S > self.until:
                raise LaunchError(
                    f"{job.name} is still {state or 'without a state'} at the end of --retry_for; it goes on waiting. "
                    f"Watch it: python -m launch watch {job.name}",
                    exit_code=1,
                )
            self.clock.sleep(POLL_S)

    def _pause(self, seconds: float, why: str) -> None:
        left = self.until - self.clock.now()
        if seconds > left:
            raise LaunchError(
                f"gave up after try {self.tried}: {why}, and the next try would be after --retry_for ends. "
                "Fix: a longer --retry_for, more places in RETRY_PLACES, or scheduling.strategy FLEX_START",
                exit_code=1,
            )
        waiting.wait(self.clock, seconds, f"{why}; try {self.tried + 1}", left)


def perimeter_wait_s(made: request.Request, reason: reasons.Reason) -> float:
    """Seconds until a perimeter's last change is in force. Raises LaunchError where there was no change."""
    from launch.preflight import perimeter_change

    check = perimeter_change(made.project)
    if check is not None and check.status == "failure":
        return float(check.command.removeprefix("sleep "))
    known = check.found if check is not None else "no perimeter can be seen"
    denied = dataclasses.replace(reason, kind="")
    raise LaunchError(f"{_ended(denied, 1)}\nA perimeter's change would be waited for, but: {known}", exit_code=1)


def _sent(made: request.Request) -> vertex.Job | None:
    """The job, if a submission without an answer made one after all."""
    where = {"PROJECT": made.project, "REGION": made.region}
    try:
        found = vertex.jobs(made.kind, where, 1, f"displayName={made.name}")
    except vertex.GcloudError:
        return None
    newest = found[0] if found else {}
    return vertex.Job.parse(newest.get("name", "")) if vertex.state(newest) not in vertex.ENDED else None


def _ended(reason: reasons.Reason, tried: int) -> str:
    lines = [f"not tried again (try {tried}): {reason.said}", reason.tip, *(f"  - {fix}" for fix in reason.fixes)]
    return "\n".join(line for line in lines if line)
