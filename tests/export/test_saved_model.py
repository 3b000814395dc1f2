"""SavedModels against `translate`, loaded by a process that has neither keras nor kzoo."""

import io
import itertools
import json
import resource
import struct
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from message_of import message_of
from named_languages import make, sentence_piece_model
from PIL import Image
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from kzoo.decoding import SearchSettings, text_reader
from kzoo.export import graph_search
from kzoo.images import read_picture
from kzoo.models import Translator
from kzoo.presets import attention_bridge_m2m_tiny, glyph_zh_en_tiny, image_text_tiny, pope_tiny
from kzoo.serve import Served
from kzoo.serve.rest import metadata
from kzoo.text import (
    CharacterTokenizer,
    MarianTokenizer,
    MosesSubwordTokenizer,
    SubwordTokenizer,
    train_subwords,
)
from kzoo.text.reading import Reading
from kzoo.text.vocabulary import SPECIAL

if keras.backend.backend() != "tensorflow":
    pytest.skip("a SavedModel is TensorFlow's", allow_module_level=True)

import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from kzoo.export import export_saved_model
from kzoo.export.graph_inputs import decode_pictures, graph_tokenizer
from kzoo.export.graph_translator import GraphWeights, TextSearch, quantized

ENGLISH = [
    "a man walks.",
    "two dogs run in the snow.",
    "",
    "the man sees a dog.",
    "dogs.",
    "a man and two dogs.",
]
REVERSED = [sentence[::-1] for sentence in ENGLISH]  # the same characters, other subwords
# What clients may send as text; what is not UTF-8 is replaced by U+FFFD.
UNUSUAL = [
    b"a \xff dog\xfe\xff.",
    b"\xc3",
    b"snow \xe4\xba runs",
    b"\xed\xa0\x80 a \xc0\xaf man",
    b"two\0 dogs\0",
    "😀 dogs 👩‍👩‍👧".encode(),
    "שלום a الكلب".encode(),
    "\u202edogs\u202c\ufeff \u00a0".encode(),
    "a \u2060m\u00adan\U000e0101".encode(),
    b" ",
    b"\n\t",
    "\r\n\u2028a man\r\r\nand\x85\x1ctwo dogs.\u2029\n".encode(),
    b"dogs " * 30,
]
REPLACED = [text.decode(errors="replace") for text in UNUSUAL]
CHINESE = ["人看狗", "", "两只狗跑。", "雪", "龘人", "人", "\n人\r\n看\x85\n"]
TRANSFORMER = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}

# What another program does: read requests for a model's signature, call it, print its answers.
CLIENT = """
import gc, json, sys, types
gc.disable()
for name in ("keras", "keras_hub", "kzoo"):
    sys.modules[name] = None
# tensorflow_text has Keras layers of its own, which a SavedModel does not need.
sys.modules["tensorflow_text.python.keras"] = types.ModuleType("keras")
import tensorflow as tf, tensorflow_text

# Optimizing a graph takes longer than it runs here.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})

def text(value):
    if isinstance(value, list):
        return [text(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value

def tensor(values, spec):
    if spec.dtype == tf.string:
        values = [v if isinstance(v, bytes) else v.encode(errors="surrogateescape") for v in values]
    return tf.reshape(tf.constant(values, spec.dtype), [len(values), *spec.shape[1:]])

models = {}
for line in sys.stdin:
    folder, signature, inputs = json.loads(line)
    if folder not in models:
        models = {folder: tf.saved_model.load(folder)}
    if "image_files" in inputs:
        inputs["image"] = [tf.io.read_file(path).numpy() for path in inputs.pop("image_files")]
    function = models[folder].signatures[signature]
    specs = function.structured_input_signature[1]
    try:
        found = function(**{name: tensor(values, specs[name]) for name, values in inputs.items()})
    except tf.errors.InvalidArgumentError as error:
        print(json.dumps({"error": error.message}), flush=True)
        continue
    print(json.dumps({k: text(v.numpy().tolist()) for k, v in found.items()}), flush=True)
"""


@pytest.fixture(autouse=True)
def one_row_count(monkeypatch):
    """Each is traced and compiled on its own."""
    monkeypatch.setattr(graph_search, "ROWS", (4,))


@pytest.fixture(autouse=True)
def only_tokenized(monkeypatch):
    """Exports do nothing else of what translators do with a text."""

    def read(tokenize, sentences, *_):
        return [Reading(tokens) for tokens in tokenize(sentences)]

    monkeypatch.setattr(text_reader, "read", read)


@pytest.fixture(scope="module", autouse=True)
def client():
    """The other program: one for all tests, since it imports TensorFlow for ten seconds, beside the first."""
    command = [sys.executable, "-c", CLIENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()
    assert process.returncode == 0


@pytest.fixture
def ask(client, tmp_path):
    """Function of requests, which returns another process's answers by the test's SavedModel."""

    def answers(*requests):
        found = []
        for signature, inputs in requests:
            print(json.dumps((str(tmp_path / "model"), signature, inputs)), file=client.stdin, flush=True)
            found.append(json.loads(client.stdout.readline()))
        return found

    return answers


def subwords(**kwargs):
    return SubwordTokenizer(train_subwords(ENGLISH * 5, 40), **kwargs)


def test_texts_without_subwords_have_no_language_code():
    proto = train_subwords(ENGLISH * 5, 40)
    pieces = [*SPECIAL.values(), ">>fra<<", *SubwordTokenizer(proto).get_vocabulary()[len(SPECIAL) :]]
    tokenizer = MarianTokenizer(proto, pieces, language="fra")
    texts = ["", " ", "\u00a0", "\u3000", ">>fra<<", ">>fra<< ", "a man", ">>fra<< dogs", "\u200b"]
    found = tokenizer(texts)
    assert [bool(tokens) for tokens in found] == [False] * 6 + [True, True, False]
    assert found[7][0] == found[6][0] == pieces.index(">>fra<<")
    assert graph_tokenizer(tokenizer).tokenize(tf.constant(texts)).to_list() == found


def test_pieces_of_bytes_become_text():
    model = io.BytesIO()
    options = {"vocab_size": 300, "byte_fallback": True, "hard_vocab_limit": False, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=iter(ENGLISH * 5), model_writer=model, **options)
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(token) for token in range(3, processor.vocab_size())]
    tokenizer = MarianTokenizer(model.getvalue(), [*SPECIAL.values(), *pieces, "▁Hund", ">>fra<<"])
    rows = [[*row, 3] for row in tokenizer(["a ☃ man", "☃", "", "two dogs"])]
    rows += [[len(pieces) + 4, *rows[0]], [len(pieces) + 5]]  # pieces of the other language, codes
    found = tokenizer.detokenize(rows)
    assert found == ["a ☃ man", "☃", "", "two dogs", "Hund a ☃ man", ">>fra<<"]
    graph = graph_tokenizer(tokenizer).detokenize(tf.ragged.constant(rows))
    assert [text.decode() for text in graph.numpy()] == found


def test_texts_of_spaces_have_no_characters():
    tokenizer = CharacterTokenizer(list("人 "))
    texts = ["", " ", " \u3000\u00a0\x1f\n", " 人 ", " \u200b", "\u2800"]
    found = tokenizer(texts)
    assert [len(tokens) for tokens in found] == [0, 0, 0, 3, 0, 1]
    assert graph_tokenizer(tokenizer).tokenize(tf.constant(texts)).to_list() == found


def check_signatures(folder, translator):
    """Compare a SavedModel's signatures with those that `kzoo serve` says that its preset has."""
    saved = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    expected = {
        name: MessageToDict(
            signature, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for name, signature in saved.meta_graphs[0].signature_def.items()
        if not name.startswith("__")  # TensorFlow's own
    }
    translator.search = translator.search.changed(beam_size=2)
    found = metadata(Served(translator, "tiny"))["metadata"]["signature_def"]["signature_def"]
    for signature in (*expected.values(), *found.values()):
        for output in signature["outputs"].values():
            del output["name"]  # of an operation in the graph, which a server has none of
    assert found == expected


def check_translations(answer, best, translator_n_best):
    """Compare both signatures with what the translator gives; where it found fewer, with nothing."""
    assert best["translation"] == [hypotheses[0].text for hypotheses in translator_n_best]
    assert best["score"] == pytest.approx([scores[0] for scores in answer["score"]], abs=1e-6)
    for texts, scores, expected in zip(
        answer["translation"], answer["score"], translator_n_best, strict=True
    ):
        assert texts[: len(expected)] == [hypothesis.text for hypothesis in expected]
        np.testing.assert_allclose(scores[: len(expected)], [h.score for h in expected], atol=1e-4)
        missing = len(texts) - len(expected)
        assert texts[len(expected) :] == [""] * missing
        assert scores[len(expected) :] == pytest.approx([-1e9] * missing)


@pytest.mark.usefixtures("one_shape")
def test_a_full_disk_is_one_line(tmp_path):
    """No file grows over 100 bytes: TensorFlow's error is none of Python's for files."""
    translator = pope_tiny(subwords(), **TRANSFORMER)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        message = message_of(translator.export, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert message == f"{tmp_path / 'model'}: cannot be written (File too large)"
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("one_shape")
def test_a_transformer_translates_text(ask, tmp_path, monkeypatch):
    """Of any bytes, and of sentences of several padded lengths in one batch."""
    for name, sizes in {"ROWS": (1, 4), "LENGTHS": (8, 16)}.items():
        monkeypatch.setattr(graph_search, name, sizes)
    keras.utils.set_random_seed(1)
    translator = pope_tiny(subwords(), **{**TRANSFORMER, "max_length": 24})
    # The beam is given.
    translator.search = SearchSettings(9, length_penalty=0, min_length=3, no_repeat_ngram=1)
    translator.export(tmp_path / "model", beam_size=3)
    prefixes = ["dogs.", "", "a man", "two dogs run in the snow. a", "", ""]
    prefixed, unknown, best, several, none, no_n_best, one, *unusual = ask(
        ("prefixed", {"text": ENGLISH, "prefix": prefixes}),
        ("prefixed", {"text": ENGLISH[:2], "prefix": ["a", "龘"]}),
        ("serving_default", {"text": ENGLISH}),
        ("n_best", {"text": ENGLISH}),
        ("serving_default", {"text": []}),
        ("n_best", {"text": []}),
        ("serving_default", {"text": ENGLISH[1:2]}),
        ("serving_default", {"text": as_json(UNUSUAL)}),
        ("n_best", {"text": as_json(UNUSUAL)}),
    )
    expected = translator.n_best(ENGLISH + REPLACED, 3, beam_size=3, length_penalty=0, truncate=True)
    check_translations(several, best, expected[: len(ENGLISH)])
    begun = translator.n_best(ENGLISH, 3, beam_size=3, prefixes=prefixes)
    best_begun = {name: [values[0] for values in column] for name, column in prefixed.items()}
    check_translations(prefixed, best_begun, begun)
    assert begun[1] == expected[1] and begun[0][0].text.startswith("dogs.")
    assert "vocabulary" in unknown["error"]
    check_translations(*reversed(unusual), expected[len(ENGLISH) :])
    assert best["translation"][2] == ""
    assert none == no_n_best == {"translation": [], "score": []}
    assert one["translation"] == best["translation"][1:2]
    keras_s_own = keras.layers.TFSMLayer(tmp_path / "model", call_endpoint="serving_default")
    assert keras_s_own(tf.constant(ENGLISH[1:2]))["translation"].numpy()[0].decode() == one["translation"][0]
    assert len({len(words) // 16 for words in translator.source_tokenizer(REPLACED)}) > 1


@pytest.mark.parametrize(
    "positions",
    [{"position_encoding": "bias", "position_options": {}}, {"position_options": {"per_head": True}}],
    ids=["bias", "per_head"],
)
def test_positions_inside_attention_are_exported(positions, ask, tmp_path):
    keras.utils.set_random_seed(1)
    translator = pope_tiny(subwords(), **TRANSFORMER, **positions)
    translator.export(tmp_path / "model", beam_size=3)
    best, several = ask(("serving_default", {"text": ENGLISH}), ("n_best", {"text": ENGLISH}))
    check_translations(several, best, translator.n_best(ENGLISH, 3, beam_size=3, truncate=True))


def as_json(texts: list[bytes]) -> list[str]:
    """Return bytes as strings, each that is not UTF-8 as half of a surrogate pair."""
    return [text.decode(errors="surrogateescape") for text in texts]


def test_glyphs_translate_characters(ask, tmp_path):
    """With float16 weights."""
    pytest.importorskip("noto_cjk_sans_otc", reason="the glyphs' font is not installed")
    keras.utils.set_random_seed(1)
    characters = CharacterTokenizer(list("人看狗两只跑。雪"))
    sizes = {"embedding_dim": 16, "bidirectional": (16,), "unidirectional": (), "decoder_units": (16,)}
    translator = glyph_zh_en_tiny(characters, subwords(), architecture="fc_1", max_length=16, **sizes)
    translator.export(tmp_path / "model", beam_size=2, precision="float16")
    round_to_float16(translator)
    best, several, none, no_n_best, *unusual = ask(
        ("serving_default", {"text": CHINESE}),
        ("n_best", {"text": CHINESE}),
        ("serving_default", {"text": []}),
        ("n_best", {"text": []}),
        ("serving_default", {"text": as_json(UNUSUAL)}),
        ("n_best", {"text": as_json(UNUSUAL)}),
    )
    expected = translator.n_best(CHINESE + REPLACED, 2, beam_size=2, truncate=True)
    check_translations(several, best, expected[: len(CHINESE)])
    check_translations(*reversed(unusual), expected[len(CHINESE) :])
    assert none == no_n_best == {"translation": [], "score": []}


def test_pictures_come_with_the_text(ask, tmp_path, random):
    translator = image_text_tiny(subwords(), image_shape=(16, 16, 3), **TRANSFORMER)
    files = [str(tmp_path / f"{i}.png") for i in range(len(ENGLISH))]
    for file in files:
        Image.fromarray(random.integers(0, 256, (16, 16, 3), "uint8")).save(file)
    broken = tmp_path / "broken.png"
    broken.write_bytes(Path(files[0]).read_bytes()[:60])
    translator.export(tmp_path / "model", beam_size=2)
    check_signatures(tmp_path / "model", translator)
    best, several, refused, again, *none = ask(
        ("serving_default", {"text": ENGLISH, "image_files": files}),
        ("n_best", {"text": ENGLISH, "image_files": files}),
        ("serving_default", {"text": ENGLISH[:1], "image_files": [str(broken)]}),
        ("serving_default", {"text": ENGLISH, "image_files": files}),
        ("serving_default", {"text": [], "image_files": []}),
        ("n_best", {"text": [], "image_files": []}),
    )
    check_translations(several, best, translator.n_best(ENGLISH, 2, beam_size=2, images=files))
    assert none == [{"translation": [], "score": []}] * 2
    assert "error" in refused
    assert again == best


@pytest.mark.parametrize(("kind", "mode"), [("png", "RGBA"), ("png", "P"), ("png", "I;16"), ("jpeg", "L")])
def test_pictures_are_read_as_pillow_reads_them(kind, mode, tmp_path, random):
    pixels = random.integers(0, 256, (30, 20, 4), "uint8").repeat(3, 0).repeat(3, 1)
    image = Image.fromarray(pixels).convert("RGB").convert("L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image).astype("uint16") * 257)
    image.save(tmp_path / "image", kind)
    ours = decode_pictures(tf.constant([(tmp_path / "image").read_bytes()]), (16, 24))[0]
    np.testing.assert_allclose(ours, read_picture(tmp_path / "image", (16, 24)), atol=1.01)


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_pictures_are_turned_as_pillow_turns_them(kind, tmp_path, random):
    """All orientations in both byte orders, values that do not exist; data that is broken turns nothing."""
    picture = Image.fromarray(random.integers(0, 256, (6, 4, 3), "uint8").repeat(5, 0).repeat(5, 1))
    marks = [exif(order, value) for order in "<>" for value in range(10)]
    broken = [exif("<", 6)[:length] for length in (0, 5, 8, 15, 25)] + [b"II*\0\xff\xff\xff\xff"]
    files = [tmp_path / f"{number}.{kind}" for number in range(len(marks) + len(broken))]
    for file, mark in zip(files, marks + broken, strict=True):
        picture.save(file, exif=b"Exif\0\0" + mark)
        assert mark in file.read_bytes()
    picture.save(tmp_path / f"upright.{kind}")
    expected = [read_picture(file, (16, 24)) for file in files[: len(marks)]]
    expected += [read_picture(tmp_path / f"upright.{kind}", (16, 24))] * len(broken)
    ours = decode_pictures(tf.constant([file.read_bytes() for file in files]), (16, 24))
    np.testing.assert_allclose(ours, expected, atol=1.01)
    assert len({found.tobytes() for found in expected}) == 8


def exif(order, orientation):
    """Return EXIF data of a width and an orientation, in a byte order of `struct`'s."""
    header = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8)
    width = struct.pack(order + "HHIHH", 0x0100, 3, 1, 20, 0)
    turn = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return header + struct.pack(order + "H", 2) + width + turn + struct.pack(order + "I", 0)


def test_features_come_with_the_text(ask, tmp_path, random):
    """With float16 weights, which are read in float32."""
    translator = image_text_tiny(subwords(), image_shape=(2, 6), **TRANSFORMER)
    images = random.normal(size=(len(ENGLISH), 2, 6)).astype("float32")
    translator.export(tmp_path / "model", beam_size=2, precision="float16")
    check_signatures(tmp_path / "model", translator)
    assert variables_size(tmp_path / "model") < 0.6 * 4 * translator.count_params()
    round_to_float16(translator)
    given = {"text": ENGLISH, "image": images.tolist()}, {"text": [], "image": []}
    best, none, several, no_n_best = ask(*itertools.product(("serving_default", "n_best"), given))
    check_translations(several, best, translator.n_best(ENGLISH, 2, beam_size=2, images=images))
    assert none == no_n_best == {"translation": [], "score": []}


def round_to_float16(translator):
    """Give a translator the weights that a float16 export of it has."""
    translator.set_weights(
        [weight.astype("float16").astype(weight.dtype) for weight in translator.get_weights()]
    )


def test_int8_weights_are_those_of_keras(ask, tmp_path, random):
    tokenizer = subwords()
    translator = pope_tiny(tokenizer, **TRANSFORMER)
    whole = [weight.copy() for weight in translator.get_weights()]
    backbone = quantized(translator.backbone)
    export_saved_model(translator, tmp_path / "model", "int8", beam_size=2)
    check_signatures(tmp_path / "model", translator)
    several, best = ask(("n_best", {"text": ENGLISH}), ("serving_default", {"text": ENGLISH}))
    check_translations(several, best, Translator(backbone, tokenizer).n_best(ENGLISH, 2, beam_size=2))
    words = {name: random.integers(4, 30, (3, 7), "int32") for name in ("source", "target")}
    logits, near = (keras.ops.convert_to_numpy(model(words)) for model in (translator, backbone))
    np.testing.assert_allclose(near, logits, atol=0.05 * np.abs(logits).max())
    for weight, before in zip(translator.get_weights(), whole, strict=True):
        np.testing.assert_array_equal(weight, before)
    assert variables_size(tmp_path / "model") < 0.9 * 4 * translator.count_params()


@pytest.mark.parametrize("name", ["glyph_tiny_tatoeba_zh_en", "attention_bridge_m2m_tiny_multi30k"])
def test_int8_weights_of_recurrent_models_give_nearly_the_same_scores(name, random, shelved):
    translator = shelved(name)
    translator.bake()
    inputs = {side: random.integers(4, 100, (3, 7), "int32") for side in ("source", "target")}
    if translator.multilingual:
        inputs |= {"source_language": np.zeros(3, "int32"), "target_language": np.ones(3, "int32")}
    models = (translator, quantized(translator.backbone))
    logits, near = (keras.ops.convert_to_numpy(model(inputs)) for model in models)
    assert 0 < np.abs(near - logits).max() < 0.05 * np.abs(logits).max()


def variables_size(folder):
    return (folder / "variables/variables.data-00000-of-00001").stat().st_size


def test_several_languages_in_one_batch(ask, tmp_path):
    """With float16 weights."""
    keras.utils.set_random_seed(1)
    tokenizers = {
        "en": subwords(config_file="en_tokenizer.json"),
        "de": SubwordTokenizer(train_subwords(REVERSED * 5, 44), config_file="de_tokenizer.json"),
    }
    sizes = {"embedding_dim": 16, "width": 16, "num_heads": 2, "hidden_dim": 16, "max_length": 24}
    translator = attention_bridge_m2m_tiny(tokenizers, **sizes)
    translator.export(tmp_path / "model", beam_size=2, precision="float16")
    check_signatures(tmp_path / "model", translator)
    round_to_float16(translator)
    source, target = ["en", "de", "en", "de", "de", "en"], ["de", "en", "en", "de", "en", "de"]
    languages = {"source_language": source, "target_language": target}
    prefixes = ["dogs.", "", "a man", "", "snow", "a"]
    prefixed, best, several, *none, unknown, fewer, embedded = ask(
        ("prefixed", {"text": ENGLISH, "prefix": prefixes, **languages}),
        ("serving_default", {"text": ENGLISH, **languages}),
        ("n_best", {"text": ENGLISH, **languages}),
        ("serving_default", {"text": [], "source_language": [], "target_language": []}),
        ("n_best", {"text": [], "source_language": [], "target_language": []}),
        ("embed", {"text": [], "language": []}),
        ("serving_default", {"text": ["a"], "source_language": ["xx"], "target_language": ["de"]}),
        ("n_best", {"text": ENGLISH[:2], "source_language": ["en"], "target_language": ["de"]}),
        ("embed", {"text": ENGLISH, "language": source}),
    )
    expected = [
        translator.n_best([text], 2, source_language=s, target_language=t, beam_size=2)[0]
        for text, s, t in zip(ENGLISH, source, target, strict=True)
    ]
    check_translations(several, best, expected)
    begun = [
        translator.n_best([text], 2, source_language=s, target_language=t, beam_size=2, prefixes=[prefix])[0]
        for text, s, t, prefix in zip(ENGLISH, source, target, prefixes, strict=True)
    ]
    check_translations(prefixed, {name: [v[0] for v in values] for name, values in prefixed.items()}, begun)
    assert none == [{"translation": [], "score": []}] * 2 + [{"embedding": []}]
    assert "en, de" in unknown["error"]
    assert " row " in fewer["error"]
    vectors = [translator.embed([text], code)[0] for text, code in zip(ENGLISH, source, strict=True)]
    np.testing.assert_allclose(embedded["embedding"], vectors, atol=1e-5)


@pytest.mark.parametrize("kind", ["nllb", "small"])
def test_languages_that_the_vocabulary_names(kind, ask, tmp_path):
    translator = make(kind, sentence_piece_model(), max_length=24)
    translator.search = SearchSettings(2)
    translator.export(tmp_path / "model")
    texts = ["A dog runs.", "", "Zwei Hunde.", " \n", "Two men sing.", "\r\nEine\u2028Frau\n"]
    asked = {
        "source_language": ["en", "en", "de", "de", "en", "de"],
        "target_language": ["de", "de", "en"] * 2,
    }
    codes = {code[:2]: code for code in translator.target_languages}
    languages = {name: [codes[code] for code in given] for name, given in asked.items()}
    if kind == "small":
        del languages["source_language"]
    prefixes = ["Ein", "", "A man", "", "", "Two"]
    several, best, prefixed, *none, unknown = ask(
        ("n_best", {"text": texts, **languages}),
        ("serving_default", {"text": texts, **languages}),
        ("prefixed", {"text": texts, "prefix": prefixes, **languages}),
        ("serving_default", {"text": [], **{name: [] for name in languages}}),
        ("serving_default", {"text": ["a"], **{name: ["xx"] for name in languages}}),
    )
    pairs = list(zip(*asked.values(), strict=True))
    check_translations(
        several,
        best,
        [
            translator.n_best([text], 2, source_language=s, target_language=t)[0]
            for text, (s, t) in zip(texts, pairs, strict=True)
        ],
    )
    begun = [
        translator.n_best([text], 2, source_language=s, target_language=t, prefixes=[prefix])[0]
        for text, (s, t), prefix in zip(texts, pairs, prefixes, strict=True)
    ]
    check_translations(prefixed, {name: [v[0] for v in values] for name, values in prefixed.items()}, begun)
    assert begun[0][0].text.startswith("Ein")
    assert none == [{"translation": [], "score": []}]
    assert codes["ru"] in unknown["error"]


def test_outputs_end_where_those_of_translate_do(xla_backends):
    xla_backends("tensorflow", "jax")
    backbone = pope_tiny(subwords(), **{**TRANSFORMER, "max_length": 64}).backbone
    limits = TextSearch(GraphWeights(backbone), SearchSettings()).limits
    assert limits == {16: 32, 24: 44, 32: 56, 48: 64, 64: 64}
    limits = TextSearch(GraphWeights(backbone), SearchSettings(max_length=9)).limits
    assert set(limits.values()) == {9}


def test_a_graph_without_xla_has_few_searches():
    assert graph_search.padded_lengths(256, xla=False) == [24, 64, 256]
    assert graph_search.padded_lengths(50, xla=False) == [24, 50]


def small(tokenizer=None):
    return pope_tiny(tokenizer or subwords(), **TRANSFORMER)


def wide():
    translator = small()
    translator.set_weights([weight + 70_000 for weight in translator.get_weights()])
    return translator


def diverged():
    translator = small()
    translator.set_weights([weight * np.nan for weight in translator.get_weights()])
    return translator


def already_quantized():
    translator = small()
    translator.quantize("int8")
    return translator


def with_adapters():
    translator = small()
    translator.backbone.enable_lora(2)
    return translator


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.parametrize(
    ("make", "options", "name"),
    [
        (
            lambda: small(MosesSubwordTokenizer(train_subwords(ENGLISH * 5, 40), "en")),
            {},
            "MosesSubwordTokenizer",
        ),
        (small, {"precision": "int4"}, "'int4'"),
        (small, {"beam_size": 0}, "beam_size"),
        (small, {"length_penalty": "x"}, "length_penalty"),
        (already_quantized, {"precision": "int8"}, "precision"),
        (with_adapters, {"precision": "int8"}, "LoRA"),
        (wide, {"precision": "float16"}, "65,504"),
        (diverged, {}, "finite"),
    ],
)
def test_what_cannot_be_exported_is_named(make, options, name, tmp_path):
    assert name in message_of(make().export, tmp_path / "model", **options)
    assert not (tmp_path / "model").exists()


def test_a_folder_with_other_contents_is_kept(tmp_path):
    (tmp_path / "precious").write_text("keep")
    assert str(tmp_path) in message_of(small().export, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
