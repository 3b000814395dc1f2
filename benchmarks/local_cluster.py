"""Several processes of one run on this machine, for measurements and tests."""

import contextlib
import json
import socket

from kzoo.training.processes import KERAS_PROCESSES, TF_CONFIG


def local_cluster(workers: int) -> list[dict[str, str]]:
    """Return each worker's environment variables for a run of several processes on this machine.

    They name the processes for TensorFlow and for JAX, and the library with which JAX connects CPUs.

    Example:

    >>> [json.loads(variables["TF_CONFIG"])["task"]["index"] for variables in local_cluster(2)]
    [0, 1]
    """
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(socket.socket()) for _ in range(workers)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    return [
        {
            TF_CONFIG: json.dumps(
                {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": number}}
            ),
            **dict(zip(KERAS_PROCESSES, (",".join(addresses), str(workers), str(number)), strict=True)),
            "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
        }
        for number in range(workers)
    ]
