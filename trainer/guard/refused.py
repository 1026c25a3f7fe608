"""A batch that TensorFlow refuses: a record that can't be read, or examples that don't fit the model."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from trainer import said
from trainer.guard import own, unfit
from trainer.input.pipeline import Pipeline
from trainer.input.sources import DataError
from trainer.loop import Loop

REFUSED = (
    tf.errors.InvalidArgumentError,
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    tf.errors.UnimplementedError,
)
ON_THE_WAY_IN = (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError)
# Python called from the graph, or a data set shorter than it says; under several workers a lost peer looks like that
PERHAPS_A_PEER = (tf.errors.FailedPreconditionError, tf.errors.UnknownError)


@contextlib.contextmanager
def explained(loop: Loop) -> Iterator[None]:
    """Around steps: raises DataError with the file and the record, or with the layer, and what is wrong there."""
    try:
        yield
    except REFUSED as error:
        raise DataError(_why(error, loop)) from error
    except PERHAPS_A_PEER as error:
        if loop.pipeline.share.workers > 1:
            raise
        raise DataError(_why(error, loop)) from error
    except (ValueError, TypeError) as error:
        if not own.while_traced(error):
            raise
        raise unfit.sentence(error, loop.pipeline) from error
    loop.pipeline.bad.check()


def _why(error: tf.errors.OpError, loop: Loop) -> str:
    if said.on_the_way_in(error) or isinstance(error, ON_THE_WAY_IN):
        return loop.pipeline.locate(loop.step) or _unbatched(error, loop.pipeline)
    place = f", in {node}" if (node := said.node(error)) else ""
    return (
        f"the model can't take a batch of the {loop.pipeline.reading} data after step {loop.step}{place}: "
        f"{said.first_line(error)}; compare what data.parse gives with the layers and the loss of model.py"
    )


def _unbatched(error: tf.errors.OpError, pipeline: Pipeline) -> str:
    augment = " and data.augment" if hasattr(pipeline.data, "augment") else ""
    return (
        f"no batch could be made of the {pipeline.reading} data: {said.first_line(error)}; every record can be "
        f"decoded on its own, so look at the shapes that data.parse{augment} gives"
    )
