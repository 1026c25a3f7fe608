"""The tuning service: one metric after each epoch, by the chief alone, through cloudml-hypertune."""

import os
import warnings
from collections.abc import Mapping

from trainer.sources import DataError


class Tuning:
    """Reports `metric` (a name of an epoch's logs, such as val_accuracy) to the file that the service reads.

    cloudml-hypertune writes to CLOUD_ML_HP_METRIC_FILE; outside of a trial nothing is written.
    """

    def __init__(self, metric: str, *, active: bool):
        self.metric, self._service = metric, None
        if active and os.environ.get("CLOUD_ML_HP_METRIC_FILE"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it imports a deprecated module
                import hypertune
            self._service = hypertune.HyperTune()

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Report one epoch, counted from 1. Raises DataError where the metric isn't among `logs`."""
        if self._service is None:
            return
        if self.metric not in logs:
            known = ", ".join(logs)
            raise DataError(f"--hypertune_metric={self.metric} is not among what this model reports: {known}")
        self._service.report_hyperparameter_tuning_metric(self.metric, float(logs[self.metric]), global_step=epoch)
