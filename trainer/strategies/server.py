"""What workers and parameter servers of an asynchronous job do: serve TensorFlow until the chief is gone."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator

import tensorflow as tf

from trainer.replicas import lookout
from trainer.replicas.cluster import Cluster
from trainer.report import Console


def wait_for_chief(cluster: Cluster, timeout_s: float, *, was_there: bool = False) -> None:
    """Until the chief, or the worker that is chief, has ended; one that never was there is waited for.

    Args:
        was_there: that it has been there is known already, so that it may have ended before the first look.
    """
    gone = threading.Event()
    chief = (cluster.addresses.get("chief") or cluster.addresses["worker"])[0]
    watch = lookout.Watch({"chief": chief}, timeout_s, lambda _: gone.set(), were_there=was_there).start()
    gone.wait()
    watch.close()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing on standard error meanwhile: TensorFlow's own threads log the chief's rightful end as an error."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def serve(cluster: Cluster, timeout_s: float, finished: Callable[[], bool], console: Console) -> int:
    """Serve until the chief ends; 0 where the job is then finished, 1 where it isn't and wants a restart.

    Args:
        timeout_s: how long the chief may give no answer.
        finished: whether the job has a result.
        console: where the one line of a lost chief goes.
    """
    if cluster.role == "ps":
        tf.config.set_visible_devices([], "GPU")
    addresses = {role: hosts for role, hosts in cluster.addresses.items() if role in ("chief", "worker", "ps")}
    tf.distribute.Server(addresses, job_name=cluster.role, task_index=cluster.index, protocol="grpc", start=True)
    wait_for_chief(cluster, timeout_s)
    if finished():
        return 0
    console.line("the chief is gone before the job was finished: start this replica again with it", "ERROR")
    return 1
