"""What people and services are told: the terminal or Cloud Logging, TensorBoard, the tuning service, result.json."""

from trainer.report.console import Console
from trainer.report.result import write_json
from trainer.report.tensorboard import TensorBoard
from trainer.report.tuning import Tuning

__all__ = ["Console", "TensorBoard", "Tuning", "write_json"]
