"""docs/troubleshooting.md, made from causes.yaml: `make troubleshooting`."""

import json
import re
from collections.abc import Iterator

from launch.diagnose.causes import FILE, SEVEN, Cause, Sign, load

ROOT = FILE.parent.parent
PAGE = ROOT / "docs" / "troubleshooting.md"
MESSAGES = ROOT / "tests" / "launch" / "data"
OPENING = """# Troubleshooting

What a job's log says, what it means and what to do. This page is made from
[launch/causes.yaml](../launch/causes.yaml) by `make troubleshooting`; don't edit it by hand. The same
knowledge reads a log for you:

    make diagnose FILE=job.log          # a file: plain, JSON lines, gzip, 100 MB in a few seconds
    make diagnose JOB=1234567890        # a job on Vertex AI: its log, and the error that it carries
    make train 2>&1 | make diagnose     # a pipe

It prints the most likely cause first: the line that shows it, which of the [seven failures](seven-failures.md)
it is, and what to do, with the names from the log in the commands. `ARGS=--json` prints the same for a program.
"""


def examples() -> dict[str, list[str]]:
    """Messages by cause, as real logs had them, at most two each."""
    found: dict[str, list[str]] = {}
    for name in ("log-samples.jsonl", "wordings.jsonl"):
        for line in (MESSAGES / name).read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            first = max(sample["text"].splitlines(), key=len).strip()
            found.setdefault(sample["cause"], []).append(first if len(first) <= 150 else first[:147] + "...")
    return {cause: sorted(set(texts), key=lambda text: (len(text), text))[-2:] for cause, texts in found.items()}


def page() -> str:
    """The whole page."""
    causes, signs, _ = load()
    seen = examples()
    parts = [OPENING, "\n## By symptom\n\n", "| the log says | it is |\n|---|---|\n"]
    for cause in causes:
        for text in seen.get(cause.id, [])[:1]:
            parts.append(f"| `{_cell(text)}` | [{cause.title}](#{cause.id}) |\n")
    for number in (*SEVEN, None):
        title = f"{number}. {SEVEN[number].capitalize()}" if number else "Beside the seven"
        parts.append(f"\n## {title.replace('Nan', 'NaN')}\n")
        for cause in causes:
            if cause.seven == number:
                parts += _section(cause, signs, seen.get(cause.id, []))
    return "".join(parts)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("`", "'")


def _section(cause: Cause, signs: tuple[Sign, ...], seen: list[str]) -> Iterator[str]:
    yield f'\n<a id="{cause.id}"></a>\n### {cause.title}\n\n`{cause.id}`. {cause.advice.tip}\n\n'
    if seen:
        yield "".join(f"    {_cell(text)}\n" for text in seen) + "\n"
    yield f"{cause.advice.explanation}\n\n" + "".join(
        f"{number}. {fix}\n" for number, fix in enumerate(cause.advice.fixes, 1)
    )
    for advice in dict.fromkeys(sign.advice for sign in signs if sign.cause is cause):
        if advice != cause.advice:
            more = advice.explanation if advice.explanation != cause.advice.explanation else ""
            yield f"\n**Also: {advice.tip}** {more}\n\n"
            yield "".join(f"{number}. {fix}\n" for number, fix in enumerate(advice.fixes, 1))
    if cause.links:
        yield "\n" + " ".join(f"<{link}>" for link in cause.links) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(load()[0])} causes")


if __name__ == "__main__":
    main()
