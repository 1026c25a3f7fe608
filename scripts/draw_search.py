"""Draws docs/search.svg: how good the best of n trials is, Bayesian against random search.

Run by hand after a change to launch/study/search.py: .venv/bin/python scripts/draw_search.py
"""

import math
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "launch")]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 300, 60, 44, 20, 46
TRIALS, SEEDS = 30, 20
CURVES = {"": ("#1a73e8", "Bayesian (the default)"), "RANDOM_SEARCH": ("#9aa0a6", "RANDOM_SEARCH")}
LOW, HIGH = 0.5, 100.0  # of the loss, logarithmic


def best_so_far(algorithm: str) -> list[float]:
    """The median over the seeds of the best loss after 1, 2, ... trials."""
    from test_study_search import curve_of

    curves = [curve_of(algorithm, seed, TRIALS) for seed in range(SEEDS)]
    return [statistics.median(values) for values in zip(*curves, strict=True)]


def place(trial: float, loss: float) -> tuple[float, float]:
    """Pixels of a point."""
    share = math.log(loss / LOW) / math.log(HIGH / LOW)
    x = LEFT + (trial - 1) / (TRIALS - 1) * (WIDTH - LEFT - RIGHT)
    return round(x, 1), round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def draw() -> str:
    """The whole picture."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">Best loss after n trials of the Branin function</text>',
        f'<text x="{LEFT}" y="37" fill="#5f6368">three kinds of parameter; median of {SEEDS} seeds; '
        "the optimum is 0.4</text>",
    ]
    for loss in (1, 10, 100):
        (left, y), (right, _) = place(1, loss), place(TRIALS, loss)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="#e8eaed"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{loss}</text>')
    for trial in (1, 10, 20, 30):
        x, y = place(trial, LOW)
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{trial}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">trials</text>')
    for row, (algorithm, (colour, name)) in enumerate(CURVES.items()):
        losses = best_so_far(algorithm)
        points = " ".join("{},{}".format(*place(number, loss)) for number, loss in enumerate(losses, 1))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        y = TOP + 22 + 18 * row
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end" fill="{colour}">{name}: {losses[-1]:.2g}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "search.svg").write_text(draw(), encoding="utf-8")
