"""Every tf.distribute strategy: which one fits, and the loops of those that step in their own way."""
