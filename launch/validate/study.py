"""The study of a tuning job: trials that add up, a metric with a name, labels that the service takes."""

from launch import spec
from launch.spec import api, dig
from launch.validate.parameters import Parameters


def check(job: spec.JobFile) -> None:
    """Note what no search can work with."""
    if job.kind != "tuning":
        return
    _trials(job)
    _labels(job)
    for place, metric in enumerate(dig(job.study, "metrics", kind=list, default=[])):
        name = dig(metric, "metricId", kind=str, default="x")
        if not name or any(letter.isspace() for letter in name):
            path = ("studySpec", "metrics", place, "metricId")
            job.document.find(path, f"metricId: {name!r}", "a metric's name, without spaces")
    algorithm = dig(job.study, "algorithm", kind=str, default="")
    given = job.pools[0].flags if job.pools else {}
    Parameters(job.document, algorithm == "GRID_SEARCH", given).check(
        ("studySpec", "parameters"), dig(job.study, "parameters", kind=list, default=[])
    )


def _trials(job: spec.JobFile) -> None:
    counts = {}
    for key in ("maxTrialCount", "parallelTrialCount"):
        counts[key] = dig(job.data, key, kind=int, default=None)
        if counts[key] is not None and counts[key] < 1:
            job.document.find((key,), f"{key}: {counts[key]}", "1 or more")
    most, parallel = counts["maxTrialCount"], counts["parallelTrialCount"]
    if most is not None and parallel is not None and parallel > most >= 1:
        came = f"parallelTrialCount: {parallel} with maxTrialCount: {most}"
        job.document.find(("parallelTrialCount",), came, "no more at once than there are trials")
    failed = dig(job.data, "maxFailedTrialCount", kind=int, default=0)
    if failed < 0:
        job.document.find(("maxFailedTrialCount",), f"maxFailedTrialCount: {failed}", "0 (Vertex AI decides) or more")


def _labels(job: spec.JobFile) -> None:
    for key, value in dig(job.data, "labels", kind=dict, default={}).items():
        if isinstance(value, str) and not api.label_fits(key, value):
            expected = "at most 63 of a-z, 0-9, _ and -, the key beginning with a letter"
            job.document.find(("labels", key), f"label {key}: {value!r}", expected)
