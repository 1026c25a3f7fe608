"""The launcher: everything that runs on your desk. It never imports TensorFlow or trainer/."""
