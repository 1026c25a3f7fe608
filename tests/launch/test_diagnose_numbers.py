"""Lines that differ in numbers only are looked at once, and nothing is missed by it."""

import io
import json
from pathlib import Path

import pytest

from launch.diagnose import causes, lines, numbers, patterns, report

WORDINGS = Path(__file__).parent / "data" / "wordings.jsonl"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"error 403", r"error 000"),
        (r"5\d\d|[1-9]\d{0,2}", r"0\d\d|[0-0]\d{0,2}"),
        (r"\x22.{0,240}\xe2\x98", r"\x22.{0,240}\xe2\x98"),
        (r"\\u0027", r"\\u0000"),
    ],
)
def test_a_pattern_without_its_numbers(source, expected):
    assert numbers.blind(source) == expected


@pytest.mark.slow
def test_every_line_that_a_pattern_fits_is_a_candidate():
    signs = causes.load()[1]
    candidates = patterns.possible([sign.pattern for sign in signs])
    fitted = 0
    for line in WORDINGS.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["text"].split("\n")[0].encode()
        fits = {at for at, sign in enumerate(signs) if patterns.exact(sign.pattern).search(text)}
        assert fits <= set(candidates.Match(lines.folded(text)[0]) or ()), text
        fitted += bool(fits)
    assert fitted > 300


@pytest.mark.parametrize(("first", "second"), [("403", "404"), ("404", "403")])
def test_a_number_that_counts_is_seen_after_its_sister(first, second):
    log = "".join(f"HTTP response code {code} with body ''\n" for code in [first] * 40 + [second])
    assert {finding.cause.id for finding in report.read(io.BytesIO(log.encode())).findings} == {
        "gcs_permission",
        "gcs_not_found",
    }


def test_json_that_escapes_angle_brackets():
    said = "<Error><Code>SecurityPolicyViolated</Code><Details>Request violates VPC Service Controls</Details></Error>"
    line = json.dumps({"message": said, "severity": "ERROR"}).replace("<", "\\u003c").replace(">", "\\u003e")
    (found,) = report.read(io.BytesIO(line.encode())).findings
    assert found.cause.id == "vpc_sc" and "<Code>SecurityPolicyViolated" in found.line
