"""The environment variables that name the processes of a run, checked before anything starts."""

import contextlib
import json
import os
import socket
import time

from kzoo.errors import UserError

TF_CONFIG = "TF_CONFIG"
KERAS_PROCESSES = (
    "KERAS_DISTRIBUTION_JOB_ADDRESSES",
    "KERAS_DISTRIBUTION_NUM_PROCESSES",
    "KERAS_DISTRIBUTION_PROCESS_ID",
)
VARIABLES = {"tensorflow": (TF_CONFIG,), "jax": KERAS_PROCESSES}  # of each backend
PATIENCE = 60  # seconds in which a host's name has to become known
EXAMPLE = (
    '{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}'
)


def local_cluster(workers: int) -> list[dict[str, str]]:
    """Return each worker's environment variables for a run of several processes on this machine.

    They name the processes for TensorFlow and JAX, and the library that JAX needs for several without GPUs.

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


def names_processes(*backends: str) -> bool:
    """Whether the environment names the processes of a run for one of these backends; by default for any."""
    return any(
        os.environ.get(name) for backend in backends or VARIABLES for name in VARIABLES.get(backend, ())
    )


def check_named_for(backend: str):
    """Refuse several processes that are named, but for another backend: each would train alone.

    Raises:
        UserError: they are; the message says which backend they are named for.
    """
    if names_processes(backend):
        return
    for other, name, count in (
        ("tensorflow", TF_CONFIG, _tf_processes()),
        ("jax", KERAS_PROCESSES[1], _jax_processes()),
    ):
        if count > 1:
            raise UserError(
                f"{name} names {count} processes for {other}, but the backend is {backend}: "
                f"set KERAS_BACKEND={other}, or unset {name}"
            )


def _tf_processes() -> int:
    """Return how many processes TF_CONFIG names; 0 if it is no such thing, which only TensorFlow minds."""
    try:
        cluster = json.loads(os.environ.get(TF_CONFIG) or "{}").get("cluster", {})
        return sum(len(cluster.get(kind, [])) for kind in ("chief", "worker"))
    except (AttributeError, TypeError, ValueError):
        return 0


def _jax_processes() -> int:
    count = os.environ.get(KERAS_PROCESSES[1], "")
    return int(count) if count.isdecimal() else 0


def tf_cluster() -> tuple[int, int]:
    """Return the number of workers in TF_CONFIG, and this one's, from 0.

    A cluster may have a `chief` in addition to its `worker`s; the chief is then number 0.

    Raises:
        UserError: TF_CONFIG is missing, or TensorFlow could not use it.
    """
    text = os.environ.get(TF_CONFIG)
    if not text:
        raise UserError(f"multi_worker needs the environment variable {TF_CONFIG}, for example {EXAMPLE}")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:  # a number with thousands of digits; deeply nested lists
        raise UserError(f"{TF_CONFIG} is not JSON ({error}); expected, for example, {EXAMPLE}") from None
    cluster, kind, index = _cluster(config), *_task(config)
    if kind not in cluster:
        raise UserError(f"{TF_CONFIG}: task.type is {kind!r}, but cluster has {', '.join(cluster)}")
    if not 0 <= index < len(cluster[kind]):
        raise UserError(
            f"{TF_CONFIG}: task.index is {index}, but cluster.{kind} has {len(cluster[kind])} addresses, "
            "counted from 0"
        )
    addresses = [*cluster.get("chief", []), *cluster.get("worker", [])]
    number = addresses.index(cluster[kind][index])
    _check_own_address(addresses, number, f"{TF_CONFIG}: task.index")
    return len(addresses), number


def _cluster(config) -> dict[str, list[str]]:
    cluster = config.get("cluster") if isinstance(config, dict) else None
    if not isinstance(cluster, dict) or not ("worker" in cluster or "chief" in cluster):
        raise UserError(
            f"{TF_CONFIG} lacks cluster.worker, the workers' addresses; expected, for example, {EXAMPLE}"
        )
    for kind, addresses in cluster.items():
        where = f"{TF_CONFIG}: cluster.{kind}"
        if kind not in ("chief", "worker"):
            raise UserError(f"{where} has no part in this kind of run: leave it out")
        if not isinstance(addresses, list) or not addresses:
            raise UserError(f"{where} is {addresses!r}, not a list of addresses HOST:PORT")
        check_addresses(addresses, where)
    check_addresses([*cluster.get("chief", []), *cluster.get("worker", [])], f"{TF_CONFIG}: cluster")
    return cluster


def _task(config: dict) -> tuple[str, int]:
    task = config.get("task")
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        raise UserError(
            f"{TF_CONFIG} lacks task.type or task.index (which worker this is); for example {EXAMPLE}"
        )
    if type(task["index"]) is not int:
        raise UserError(f"{TF_CONFIG}: task.index is {task['index']!r}, not a whole number")
    return str(task["type"]), task["index"]


def keras_processes() -> tuple[int, int] | None:
    """Return the number of processes in Keras's environment variables, and this one's; `None` without them.

    Raises:
        UserError: one of the three is missing or wrong.
    """
    given = {name: os.environ.get(name, "") for name in KERAS_PROCESSES}
    if not any(given.values()):
        return None
    missing = [name for name, value in given.items() if not value]
    if missing:
        present = ", ".join(name for name in given if name not in missing)
        raise UserError(f"the environment has {present} without {', '.join(missing)}: set all three, or none")
    addresses, *numbers = given.values()
    for name, value in zip(KERAS_PROCESSES[1:], numbers, strict=True):
        if not value.isdecimal():
            raise UserError(f"{name} is {value!r}, not a whole number")
    count, number = map(int, numbers)
    if number >= count:
        raise UserError(f"{KERAS_PROCESSES[2]} is {number}, but there are {count} processes, counted from 0")
    addresses = addresses.split(",")
    if len(addresses) not in (1, count):
        raise UserError(
            f"{KERAS_PROCESSES[0]} has {len(addresses)} addresses for {count} processes: "
            "give each one's, or the first one's alone"
        )
    check_addresses(addresses, KERAS_PROCESSES[0])
    if len(addresses) == count:
        _check_own_address(addresses, number, KERAS_PROCESSES[2])
    return count, number


def check_addresses(addresses: list, where: str):
    """Refuse an address that is not `HOST:PORT`, cannot be resolved, or appears twice."""
    for address in addresses:
        host, port = _host_and_port(str(address))
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UserError(f"{where} has {address!r}, which is not an address HOST:PORT")
        _check_host(host, address, where)
        if addresses.count(address) > 1:
            raise UserError(f"{where} has {address} twice: each worker needs its own address")


def _check_host(host: str, address: str, where: str):
    """Refuse a host that is not known within `PATIENCE`: a cluster may name its machines as they start."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.getaddrinfo(host, None)
            return
        except (OSError, UnicodeError) as error:  # the latter for a name with an empty part, such as a..b
            reason = getattr(error, "strerror", None) or error
            if isinstance(error, UnicodeError) or time.monotonic() >= end:
                raise UserError(f"{where}: {address}: no such host ({reason})") from None
        print(f"{where}: waiting for {address}, which is not known yet", flush=True)
        time.sleep(min(5, PATIENCE))


def _host_and_port(address: str) -> tuple[str, str]:
    """Return the parts of an address, an IPv6 one's host without its brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port


def _check_own_address(addresses: list[str], number: int, where: str):
    """Refuse a number that was copied from another machine.

    Behind a router, none of the addresses may be this machine's; then nothing is checked.
    """
    own = [other for other, address in enumerate(addresses) if _is_here(address)]
    if own and number not in own:
        raise UserError(
            f"{where} says that this worker is {addresses[number]}, "
            f"but this machine is {addresses[own[0]]}, number {own[0]}"
        )


def _is_here(address: str) -> bool:
    """Whether an address's host is this machine: whether one can listen on it."""
    host, _ = _host_and_port(address)
    family, kind, protocol, _, at = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        try:
            listener.bind(at)
        except OSError:
            return False
    return True
