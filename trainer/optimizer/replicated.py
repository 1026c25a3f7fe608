"""Variables of replicas: one copy for all, or one for each."""

from typing import Any

import tensorflow as tf

ONLY_FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA


def shares_variables(strategy: tf.distribute.Strategy) -> bool:
    """Whether all replicas read and write the same copy of each variable."""
    kinds = (tf.distribute.experimental.CentralStorageStrategy, tf.distribute.experimental.ParameterServerStrategy)
    return isinstance(strategy, kinds)


def replica_local(
    value: Any, dtype: tf.DType, name: str, aggregation: tf.VariableAggregation = ONLY_FIRST
) -> tf.Variable:
    """A variable of which each replica has its own; read across replicas, it is the first one's, or as `aggregation`.

    A strategy that keeps one copy for all replicas has no such variables: there it is a shared one.
    """
    if shares_variables(tf.distribute.get_strategy()):
        return tf.Variable(value, dtype=dtype, trainable=False, name=name)
    on_read = tf.VariableSynchronization.ON_READ
    return tf.Variable(value, dtype=dtype, trainable=False, name=name, synchronization=on_read, aggregation=aggregation)


def mirrored(value: Any, dtype: tf.DType, name: str) -> tf.Variable:
    """A variable that every replica changes in the same way."""
    return tf.Variable(value, dtype=dtype, trainable=False, name=name, aggregation=ONLY_FIRST)
