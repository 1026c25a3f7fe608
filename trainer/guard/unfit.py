"""A model that can't take what data.parse gives: found on a batch of zeros, before the first step."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from trainer.guard import own
from trainer.input import shapes
from trainer.input.pipeline import Pipeline
from trainer.input.sources import DataError
from trainer.replicas import peers

NOTHING = "Attempt to convert a value (None)"
# of storage, of a peer or of the memory, and told as such
NOT_OURS = (*peers.LOST, tf.errors.ResourceExhaustedError)


@contextlib.contextmanager
def told(pipeline: Pipeline) -> Iterator[None]:
    """Around the model's first calls: raises DataError with what was said, and what an example is."""
    try:
        yield
    except (DataError, *NOT_OURS):
        raise
    except (ValueError, TypeError, KeyError, AttributeError, tf.errors.OpError) as error:
        if isinstance(error, KeyError | AttributeError) and own.place(error):
            raise  # whatever the data is
        raise sentence(error, pipeline) from error


def sentence(error: Exception, pipeline: Pipeline) -> DataError:
    """The error to raise in the place of one that Keras or TensorFlow raised while it made the steps."""
    came = shapes.example(pipeline.split(pipeline.reading).element_spec)
    hint = "; is there a label for each loss, and does the model return something?" if NOTHING in str(error) else ""
    return DataError(
        f"model.py fails on what data.parse gives of the {pipeline.reading} records ({came}): {own.told(error)}{hint}"
    )
