"""The tuning service: one metric after each epoch, by the chief alone, through cloudml-hypertune."""

import json
import os
import warnings
from collections.abc import Mapping

from trainer.input.sources import DataError


class Tuning:
    """Reports `metric` (a name of an epoch's logs, such as val_accuracy) to the file that the service reads.

    cloudml-hypertune writes to CLOUD_ML_HP_METRIC_FILE; outside of a trial nothing is written.
    """

    def __init__(self, metric: str, *, active: bool):
        self.metric, self._service = metric, None
        self._reported: set[int] = set()
        if active and os.environ.get("CLOUD_ML_HP_METRIC_FILE"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it imports a deprecated module
                import hypertune
            self._service = hypertune.HyperTune()
            self._recall(os.environ["CLOUD_ML_HP_METRIC_FILE"])

    def _recall(self, path: str) -> None:
        """Take up what this trial had reported before it was restarted: it stays, and isn't said twice."""
        try:
            with open(path) as file:
                records = [record for line in file if (record := _record(line))]
        except FileNotFoundError:
            return
        mine = [record for record in records if record.get("trial") == str(self._service.trial_id)]
        self._service.metrics_queue.extend(mine)
        self._reported = {int(record["global_step"]) for record in mine if self.metric in record}

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Report one epoch, counted from 1. Raises DataError where the metric isn't among `logs`."""
        if self._service is None or epoch in self._reported:
            return
        if self.metric not in logs:
            known = ", ".join(logs)
            raise DataError(f"--hypertune_metric={self.metric} is not among what this model reports: {known}")
        self._service.report_hyperparameter_tuning_metric(self.metric, float(logs[self.metric]), global_step=epoch)


def _record(line: str) -> dict:
    """A line of the file; empty where a kill has cut it short."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
