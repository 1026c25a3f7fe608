"""Which loop drives which strategy."""

from collections.abc import Callable

import keras
import tensorflow as tf

from trainer.input.pipeline import Pipeline
from trainer.loop import Loop
from trainer.optimizer.inner import updates_by_step
from trainer.optimizer.replicated import shares_variables
from trainer.replicas.cluster import stand_in
from trainer.settings import Settings
from trainer.strategies.devices import StrategyError
from trainer.strategies.tpu import TPUError, check_static


def make_loop(
    model: keras.Model,
    strategy: tf.distribute.Strategy,
    pipeline: Pipeline,
    settings: Settings,
    build: Callable[[], keras.Model],
) -> Loop:
    """The loop for a compiled model under a strategy. `build` makes the same model again.

    Raises StrategyError where the two don't go together.
    """
    if shares_variables(strategy) and not updates_by_step(model.optimizer.inner):
        raise StrategyError(
            f"{type(model.optimizer.inner).__name__} does more at an update than change each variable by its own "
            f"gradient (a moving average, say): --strategy={settings.strategy} can't make such an update; use Adam, "
            "SGD or another without it"
        )
    if isinstance(strategy, tf.distribute.experimental.CentralStorageStrategy):
        from trainer.strategies.central import CentralLoop

        return CentralLoop(model, strategy, pipeline, jit=settings.jit)
    if isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy):
        from trainer.strategies.asynchronous import AsynchronousLoop

        return AsynchronousLoop(model, strategy, pipeline, settings=settings).evaluate_with(build)
    if isinstance(strategy, tf.distribute.TPUStrategy) or stand_in()[0] == "tpu":
        return _on_tpu(model, strategy, pipeline, settings.jit)
    return Loop(model, strategy, pipeline, jit=settings.jit)


def _on_tpu(model: keras.Model, strategy: tf.distribute.Strategy, pipeline: Pipeline, jit: bool) -> Loop:
    """Compiled whole: by the TPU itself, or, where the CPU stands in for it, by XLA for the CPU."""
    loop = Loop(model, strategy, pipeline, jit=jit)
    try:
        check_static(model, keras.utils.unpack_x_y_sample_weight(pipeline.element_spec)[0])
    except TPUError as error:
        raise StrategyError(str(error)) from None
    return loop
