"""The device that CTranslate2 computes on, with a stub in place of a GPU."""

import ctranslate2
import pytest
from message_of import message_of

from kzoo.engine import usable_cores
from kzoo.engine.translator import BATCH, CTranslate2Translator
from kzoo.presets import locate

PRESET = "pope_small_multi30k_en_de"
MISSING = "Library libcublas.so.12 is not found or cannot be loaded"


class Stub:
    """CTranslate2's `Translator`, whose GPU is the CPU; it notes how it is made and called."""

    real, error, made, calls = ctranslate2.Translator, None, [], []
    model_is_loaded = True

    def __init__(self, model, device="cpu", compute_type="default", **options):
        if device == "cuda" and compute_type == "int16":
            raise ValueError("Requested int16 compute type, but the target device does not support it")
        self.device, self.num_translators = device, options["inter_threads"]
        self.made.append((device, options["inter_threads"]))
        self.model = self.real(model, "cpu", compute_type="float32", **options)

    def translate_batch(self, tokens, **options):
        self.calls.append(options.get("max_batch_size"))
        if self.device == "cuda" and self.error:
            raise RuntimeError(self.error)
        return self.model.translate_batch(tokens, **options)


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """Function that sets the number of GPUs, and the error of computing on one."""
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    monkeypatch.setattr(ctranslate2, "Translator", Stub)

    def set_to(count, error=None):
        monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: count)
        Stub.error, Stub.made, Stub.calls = error, [], []

    return set_to


def opened(**arguments):
    return CTranslate2Translator(locate(PRESET), **arguments)


@pytest.mark.parametrize(
    ("count", "device", "expected"),
    [
        (0, "auto", "cpu"),
        (0, "cpu", "cpu"),
        (2, "auto", "cuda"),
        (2, "cuda", "cuda"),
        (2, "cpu", "cpu"),
    ],
)
def test_a_gpu_is_used_where_there_is_one(count, device, expected, gpus):
    gpus(count)
    engine = opened(device=device)
    assert engine.translate(["A dog runs."]) == ["Ein Hund rennt."]
    assert Stub.made == [(expected, 1 if expected == "cuda" else usable_cores())]
    assert (engine.device, engine.threads) == Stub.made[0]
    assert Stub.calls[-1] == BATCH[expected]
    assert engine.engine == "ctranslate2 float32" + " on cuda" * (expected == "cuda")


def test_threads_are_kept_to(gpus):
    gpus(1)
    assert [opened(device=device, threads=3).threads for device in ("cpu", "cuda")] == [3, 3]


def test_a_gpu_that_is_asked_for_must_be_there(gpus):
    gpus(0)
    message = message_of(opened, device="cuda")
    assert "CUDA" in message and "--device" in message and not Stub.made
    assert "'gpu'" in message_of(opened, device="gpu")


@pytest.mark.parametrize(
    ("error", "compute_type", "reason"), [(MISSING, "float32", MISSING), (None, "int16", "int16")]
)
def test_a_gpu_that_cannot_compute_is_left_out_or_named(error, compute_type, reason, gpus):
    gpus(1, error)
    message = message_of(opened, compute_type=compute_type, device="cuda")
    assert reason in message and "--device" in message
    with pytest.warns(UserWarning, match=reason):
        engine = opened(compute_type=compute_type)
    assert engine.device == "cpu" and engine.threads == usable_cores()
    assert engine.translate(["A dog runs."]) == ["Ein Hund rennt."]
