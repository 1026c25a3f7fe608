"""The trials of a tuning job as the API has them, in a line each or a table."""

from launch.vertex import state


def _metrics(trial: dict) -> list[dict]:
    return (trial.get("finalMeasurement") or {}).get("metrics") or []


def measured(trial: dict) -> str:
    """`val_accuracy=0.98`, or a dash where nothing was measured."""
    return " ".join(f"{metric.get('metricId')}={metric.get('value', 0):.6g}" for metric in _metrics(trial)) or "-"


def values(trial: dict) -> str:
    """`learning_rate=0.001 batch_size=64`."""
    given = trial.get("parameters") or []
    return " ".join(f"{one.get('parameterId')}={_short(one.get('value'))}" for one in given)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table(described: dict):
    """The trials of a tuning job as the API has it, best first by the study's goal."""
    from launch import console

    metric = ((described.get("studySpec") or {}).get("metrics") or [{}])[0]
    name, low = metric.get("metricId", "metric"), metric.get("goal") == "MINIMIZE"

    def rank(trial: dict) -> tuple:
        found = [one.get("value", 0) for one in _metrics(trial) if one.get("metricId") == name]
        return (not found, (found[0] if low else -found[0]) if found else 0)

    rows = [
        (str(one.get("id")), state(one), measured(one), values(one))
        for one in sorted(described.get("trials") or [], key=rank)
    ]
    return console.table(("trial", "state", name, "parameters"), rows, title="trials, best first")
