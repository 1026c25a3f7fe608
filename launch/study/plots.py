"""The study as a page to look at: history and importance of the parameters, one HTML file without a network."""

import html
import warnings
from pathlib import Path

import optuna

from launch.study import store, table
from launch.study.store import Store


def importances(keep: Store) -> dict[str, float]:
    """How much each parameter mattered, 0 to 1 in sum (PED-ANOVA, which looks at what the best trials share)."""
    if len({one.value for one in keep.trials() if one.value is not None}) < 2:
        return {}
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: float(share)
            for name, share in optuna.importance.get_param_importances(keep.study, evaluator=evaluator).items()
        }


def write(keep: Store) -> Path | None:
    """Write study.html beside the study; None where no trial has a value yet."""
    if keep.best() is None:
        return None
    import plotly.graph_objects as go

    done = [one for one in keep.trials() if one.value is not None]
    better, best, bests = max if keep.maximize else min, None, []
    for one in done:
        best = one.value if best is None else better(best, one.value)
        bests.append(best)
    numbers = [one.number + 1 for one in done]
    history = go.Figure(layout_title_text=f"{keep.metric} of each trial")
    for name, marker in ((store.SUCCEEDED, "circle"), (store.STOPPED, "x")):
        chosen = [one for one in done if store.state(one) == name]
        history.add_scatter(
            x=[one.number + 1 for one in chosen],
            y=[one.value for one in chosen],
            mode="markers",
            marker_symbol=marker,
            name=name.lower(),
            hovertext=[table.line(one) for one in chosen],
        )
    history.add_scatter(x=numbers, y=bests, mode="lines", name="best so far", line_shape="hv")
    history.update_layout(xaxis_title="trial", yaxis_title=keep.metric)
    shares = importances(keep)
    bars = go.Figure(go.Bar(x=list(shares.values())[::-1], y=list(shares)[::-1], orientation="h"))
    bars.update_layout(title_text="Importance of each parameter", xaxis_title="share")
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=not place) for place, figure in enumerate((history, bars))
    ]
    title = html.escape(keep.folder.name)
    file = keep.folder / "study.html"
    file.write_text(
        f"<!doctype html><html><head><meta charset='utf-8'><title>{title}</title></head>"
        f"<body><h1>{title}</h1>{''.join(parts)}</body></html>\n",
        encoding="utf-8",
    )
    return file
