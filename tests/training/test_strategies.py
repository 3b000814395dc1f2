"""Strategies: what several devices and several processes lose is what one device loses."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from distributed_losses import FAMILIES
from message_of import message_of

from benchmarks.local_cluster import local_cluster
from kzoo.errors import UserError, WorkerError
from kzoo.models import AttentionBridgeBackbone
from kzoo.models.backbones import uses_xla
from kzoo.training import strategies
from kzoo.training.processes import KERAS_PROCESSES
from kzoo.training.strategies import (
    STRATEGIES,
    Strategy,
    model_parallel,
    open_strategy,
    place,
    weight_layouts,
)

PROGRAM = Path(__file__).with_name("distributed_losses.py")
ALONE = {"tensorflow": "one,mirrored", "jax": "one,data_parallel,model_parallel"}
TOGETHER = {"tensorflow": "multi_worker", "jax": "data_parallel"}
# All families, and processes of their own, take a quarter of an hour: KZOO_SLOW=1 runs them.
SLOW = bool(os.environ.get("KZOO_SLOW"))
LONGEST = 1800  # seconds that processes may take
CHOSEN = list(FAMILIES) if SLOW else ["attention_bridge"]


def start(backend: str, strategy: str, devices: int, families=(), **environment) -> subprocess.Popen:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "KERAS_BACKEND": backend, "XLA_FLAGS": flags, **environment}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), strategy, str(devices), *families],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_two(backend: str, families=(), **environment) -> list[subprocess.Popen]:
    """Start two workers on this machine."""
    strategy = TOGETHER[backend]
    return [start(backend, strategy, 1, families, **named, **environment) for named in local_cluster(2)]


def outputs(running: list[subprocess.Popen]) -> list[tuple[str, str | None]]:
    """Return what processes print, standard output and errors, until they end; none outlives this."""
    try:
        return [process.communicate(timeout=LONGEST) for process in running]
    finally:
        end(running)


def end(running: list[subprocess.Popen]):
    """Kill the processes that still run."""
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


def results(running: list[subprocess.Popen]) -> list[dict]:
    """Return `{strategy: {family: 50 losses}}` of each process."""
    printed = outputs(running)
    for process, (_, errors) in zip(running, printed, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in printed]


@pytest.fixture(scope="module", params=["tensorflow", "jax"] if SLOW else ["tensorflow"])
def backend(request):
    if keras.backend.backend() == "jax":
        pytest.skip("runs once, beside the tests on TensorFlow")
    if not importlib.util.find_spec(request.param):
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture(scope="module")
def curves(backend):
    """By strategy and family, the losses in one process with two devices, and those in two processes."""
    running = [start(backend, ALONE[backend], 2, CHOSEN), *(start_two(backend, CHOSEN) if SLOW else [])]
    alone, *together = results(running)
    for number, worker in enumerate(together):
        alone[f"worker {number} of 2"] = worker[TOGETHER[backend]]
    return alone


def test_devices_and_processes_lose_what_one_device_loses(curves):
    """In 50 steps of each family, penalties and filled rows included."""
    one = curves.pop("one")
    for family in CHOSEN:
        assert len(one[family]) == 50
        assert np.ptp(one[family]) > 0.1
        for name, found in curves.items():
            np.testing.assert_allclose(found[family], one[family], atol=1e-4, err_msg=f"{name}: {family}")


@pytest.mark.skipif(not SLOW, reason="takes two minutes: KZOO_SLOW=1 runs it")
def test_a_worker_that_dies_ends_the_others_with_one_line(backend):
    running = start_two(backend, ["pope"], DIES="1")
    chief, dead = outputs(running)
    assert running[1].returncode == 9, dead[1][-3000:]
    assert running[0].returncode not in (0, None)
    assert chief[1].splitlines()[-1].startswith("error: lost the connection to another worker")
    assert "Traceback" not in chief[1]


ENCODERS = {f"attention_bridge {encoder}": encoder for encoder in ("gru", "transformer")}


@pytest.mark.parametrize("family", [*FAMILIES, *ENCODERS])
def test_every_matrix_is_split_one_way(family):
    if family in ENCODERS:
        model = AttentionBridgeBackbone([9, 9], ENCODERS[family], 16, 16, hidden_dim=16)
    else:
        model = FAMILIES[family]()[0]
    for weight in model.trainable_weights:
        layouts = [axes for pattern, axes in weight_layouts().items() if re.fullmatch(pattern, weight.path)]
        assert len(layouts) <= 1, weight.path
        assert layouts or len(weight.shape) != 2 or weight.name == "bias", weight.path
        for axes in layouts:
            assert len(axes) == len(weight.shape), weight.path
            assert axes.count("model") == 1


@pytest.mark.parametrize(
    ("path", "shape"), [("bridge/hidden/kernel", (16, 20)), ("embedding/table", (9, 16))]
)
def test_a_width_that_does_not_divide_is_named(path, shape):
    distribution = model_parallel([f"cpu:{number}" for number in range(3)])
    weight = SimpleNamespace(path=path, shape=shape)
    message = message_of(distribution.get_variable_layout, weight)
    assert all(name in message for name in (path, "3 devices", str(shape[1])))
    whole = SimpleNamespace(path="encoder_norm/gamma", shape=(16,))
    assert distribution.get_variable_layout(whole).axes == (None,)


def test_xla_is_off_under_tf_distribute():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("is about TensorFlow")
    backbone = SimpleNamespace(xla_backends=("tensorflow",))
    assert uses_xla(backbone)
    with open_strategy("mirrored").scope():
        assert not uses_xla(backbone)


def test_the_backends_strategies():
    for name, kind in STRATEGIES.items():
        if keras.backend.backend() not in kind.backends:
            assert kind.backends[0] in message_of(open_strategy, name)
    assert "mirrored" in message_of(open_strategy, "mirored")


def test_no_device_is_one_line(monkeypatch):
    def none():
        raise RuntimeError("Unable to initialize backend 'cuda'\nand more")

    for variable in ("TF_CONFIG", "KERAS_DISTRIBUTION_JOB_ADDRESSES"):
        monkeypatch.delenv(variable, raising=False)
    for name in ("list_devices", "DataParallel"):
        monkeypatch.setattr(keras.distribution, name, lambda *_, **__: none())
    assert "'cuda'" in message_of(open_strategy)
    if keras.backend.backend() == "jax":
        message = message_of(open_strategy, "data_parallel")
        assert "'cuda'" in message and "workers" not in message


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="TF_CONFIG is TensorFlow's")
def test_processes_that_are_named_for_another_backend_do_not_train_alone(monkeypatch):
    for name in KERAS_PROCESSES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_CONFIG", local_cluster(2)[0]["TF_CONFIG"])
    assert "TF_CONFIG" in message_of(open_strategy)
    assert open_strategy("one").devices == 1


TWO = ["127.0.0.1:2222", "127.0.0.1:2223"]


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("", "variable"),
        ("{", "property"),
        ("[" * 100_000, "recursion"),
        ('{"cluster": {}}', "variable"),
        (json.dumps({"cluster": {"worker": TWO[0]}, "task": {"type": "worker", "index": 0}}), "'worker'"),
        (json.dumps({"cluster": {"worker": TWO}, "task": {"type": "worker"}}), "task_id"),
        (json.dumps({"cluster": {"worker": TWO}, "task": {"type": "worker", "index": 2}}), "task_id"),
        (json.dumps({"cluster": {"worker": TWO}, "task": {"type": "chief", "index": 0}}), "'chief'"),
    ],
)
def test_a_wrong_tf_config_is_one_line(config, name, monkeypatch):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("is about TensorFlow")
    monkeypatch.setenv("TF_CONFIG", config)
    message = message_of(open_strategy, "multi_worker")
    assert "TF_CONFIG" in message and name in message


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (("127.0.0.1:1", "two", "0"), "'two'"),
        (("127.0.0.1:1,127.0.0.1:2", "3", "0"), "2 jobs"),
    ],
)
def test_wrong_keras_processes_are_one_line(values, name, monkeypatch):
    if keras.backend.backend() != "jax":
        pytest.skip("is about JAX")
    for variable, value in zip(KERAS_PROCESSES, values, strict=True):
        monkeypatch.delenv(variable, raising=False)
        if value:
            monkeypatch.setenv(variable, value)
    message = message_of(open_strategy, "data_parallel")
    assert KERAS_PROCESSES[0] in message and name in message


@pytest.mark.parametrize(
    ("cluster", "task", "expected"),
    [
        ({"worker": TWO}, ("worker", 1), (2, 1)),
        ({"chief": TWO[:1], "worker": TWO[1:]}, ("worker", 0), (2, 1)),
        ({"chief": TWO[:1], "worker": TWO[1:]}, ("chief", 0), (2, 0)),
    ],
)
def test_a_worker_knows_its_number(cluster, task, expected):
    assert place(cluster, *task) == expected


def test_what_there_is(monkeypatch):
    """One device alone; all GPUs by the backend's data parallelism; all workers where they are named."""
    found = {
        "tensorflow": ("mirrored", "multi_worker", "TF_CONFIG"),
        "jax": ("data_parallel", "data_parallel", "KERAS_DISTRIBUTION_JOB_ADDRESSES"),
    }
    for backend, (several, together, variable) in found.items():
        for devices, expected in ((["cpu:0"], "one"), (["gpu:0"], "one"), (["gpu:0", "gpu:1"], several)):
            assert strategies._default(backend, lambda devices=devices: devices) == expected
        monkeypatch.setenv(variable, "{}")
        assert strategies._default(backend, list) == together
        monkeypatch.delenv(variable)
    assert strategies._default("torch", list) == "one"


def test_one_device_is_left_alone(capsys):
    strategy = open_strategy("one")
    assert "one: 1 " in capsys.readouterr().out
    assert open_strategy(strategy) is strategy
    batches = object()
    with strategy as entered, strategy.scope():
        assert entered is strategy
        assert strategy.share(batches) is batches
    assert (strategy.is_chief, strategy.from_chief(2.5), strategy.same_logs()) == (True, 2.5, [])


def test_all_workers_get_the_chiefs_numbers():
    logs = {"loss": 2.0, "val_bleu": 30.0}
    (callback,) = SecondOfTwo(chiefs=7.0).same_logs()
    callback.on_epoch_end(0, logs)
    assert logs == {"loss": 7.0, "val_bleu": 7.0}


def test_a_worker_with_another_recipe_is_told():
    number = int(hashlib.sha256(b"recipe").hexdigest()[:6], 16)
    SecondOfTwo(chiefs=number).check_same("another recipe", "recipe")
    assert "worker 2" in message_of(SecondOfTwo(chiefs=number).check_same, "another recipe", "other")


def test_what_fails_on_one_worker_fails_on_all():
    def fails():
        raise UserError("no such file")

    run_on(SecondOfTwo(chiefs=0.0), lambda: None)
    assert message_of(run_on, SecondOfTwo(chiefs=0.0), fails) == "no such file"
    assert "another" in message_of(run_on, SecondOfTwo(chiefs=1.0), lambda: None)


def test_a_worker_says_why_it_fails_though_the_others_are_gone():
    class LeftAlone(SecondOfTwo):
        def total(self, number):
            raise ConnectionResetError("closed by the other side")

    def fails():
        raise UserError("no such file")

    assert message_of(run_on, LeftAlone(chiefs=0.0), fails) == "no such file"
    with pytest.raises(ConnectionResetError):
        run_on(LeftAlone(chiefs=0.0), lambda: None)


def test_workers_with_unequal_devices_are_refused():
    SecondOfTwo(chiefs=0.0)._check_equal(own=2, devices=4)
    with pytest.raises(WorkerError, match="worker 2"):
        SecondOfTwo(chiefs=0.0)._check_equal(own=1, devices=3)


def test_only_the_chiefs_folder_is_kept(tmp_path):
    for strategy in (Strategy(), SecondOfTwo(chiefs=0.0)):
        with strategy.write_path(tmp_path / type(strategy).__name__) as folder:
            folder.mkdir()
            (folder / "weights").write_text("…")
    assert [path.name for path in tmp_path.iterdir()] == ["Strategy"]


def test_an_error_of_one_worker_ends_it_at_once():
    """Its process would wait for the others' at its end, and JAX would end it with an abort."""
    with pytest.raises(WorkerError, match="no such file"), SecondOfTwo(chiefs=0.0):
        raise UserError("no such file")


def test_all_workers_stop_after_the_same_step():
    assert not SecondOfTwo(chiefs=1.0).any_worker(False, step=17)
    assert SecondOfTwo(chiefs=1.0).any_worker(False, step=32)
    assert SecondOfTwo(chiefs=0.0).any_worker(True, step=32)
    assert not SecondOfTwo(chiefs=0.0).any_worker(False, step=32)
    assert open_strategy("one").any_worker(True, step=17)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_a_lost_connection_is_known_by_what_jax_says(kind):
    """JAX raises either, by the moment at which the other worker ends."""
    said = "UNKNOWN: Gloo AllGather failed: Read error [127.0.0.1]:15082: Connection reset by peer"
    lost = object.__new__(strategies.DataParallel)._lost_a_worker
    assert lost(kind(said)) and not lost(kind("shapes differ"))


def run_on(strategy: Strategy, function):
    with strategy.shared_errors():
        function()


class SecondOfTwo(Strategy):
    """The second of two workers, whose chief always says one number."""

    workers, worker = 2, 1

    def __init__(self, chiefs: float):
        self.chiefs = chiefs

    def total(self, number):
        return self.chiefs + number
