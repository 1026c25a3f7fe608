"""A report for people: what happened, the line that shows it, which of the seven, and what to do in order."""

from launch import console
from launch.diagnose import values
from launch.diagnose.causes import SEVEN
from launch.diagnose.rank import WRAPPER, Finding
from launch.diagnose.report import Report

TRACEBACK_LINES = 12


def show(report: Report, name: str, known: dict[str, str]) -> None:
    """Prints the report; `known` are the project's settings, for the commands."""
    out = console.console()
    if not report.findings:
        _nothing(report, name)
        return
    first, *others = report.named
    _finding(first, known)
    if first.tier == WRAPPER and report.traceback:
        _traceback(report)
    if others:
        out.print("\n[bold]Also in this log[/bold], less likely the root:")
        for finding in others[:6]:
            out.print(f"  line {finding.line_number}: {finding.cause.title}", end="")
            out.print(f" ({finding.cause.id})", style="dim", markup=False)


def _finding(finding: Finding, known: dict[str, str]) -> None:
    out = console.console()
    cause = finding.cause
    number = f"{cause.seven}, {SEVEN[cause.seven]}" if cause.seven else "none of the seven"
    out.print(f"[bold]{cause.title}[/bold]  [dim]({cause.id}; {number})[/dim]")
    out.print(finding.advice.tip, markup=False)
    where = f"line {finding.line_number}" + (f", {finding.replica}" if finding.replica else "")
    times = f", {finding.times} lines like it" if finding.times > 1 else ""
    out.print(f"\n{where}{times}:", style="dim", markup=False)
    out.print(f"  {finding.line.strip()}", style="red", markup=False)
    out.print(f"\n{finding.advice.explanation}", markup=False)
    out.print("\n[bold]What to do[/bold]")
    filled = {**known, **values.of(finding.line)}
    for number, fix in enumerate(finding.advice.fixes, 1):
        out.print(f"  {number}. {values.fill(fix, filled)}", markup=False)
    if finding.retry:
        out.print("  Waiting and trying again can help.", style="green")
    for link in cause.links:
        out.print(f"  {link}", style="dim", markup=False)


def _traceback(report: Report) -> None:
    out = console.console()
    out.print("\n[bold]The last traceback[/bold]")
    for line in report.traceback[-TRACEBACK_LINES:]:
        out.print(f"  {line}", markup=False)


def _nothing(report: Report, name: str) -> None:
    out = console.console()
    out.print(f"No known cause in {name}.", markup=False)
    if report.traceback:
        _traceback(report)
    elif report.end:
        out.print("\nThere is no traceback either. The log ends:")
        for line in report.end:
            out.print(f"  {line}", markup=False)
    out.print("\n[bold]Where to look next[/bold]")
    for number, place in enumerate(
        (
            "The other replicas: the one that failed first writes the reason. `make diagnose JOB=ID` reads them all.",
            "The job's own state and error: `gcloud ai custom-jobs describe ID --region=$REGION`",
            "Before the container started (image, machine, permission): Logs Explorer, "
            'resource.type="ml_job", all severities; and the audit log of the project.',
            "Here, with the same flags: `make local CONFIG=...`",
            "A message that should be known: add it to launch/causes.yaml (the file's first lines say how).",
        ),
        1,
    ):
        out.print(f"  {number}. {place}", markup=False)
