"""The training job: everything that runs in the container."""
