"""CTranslate2 as the engine: Keras's translations, for every Transformer that its format holds."""

import io
import os
import shutil
import subprocess
import sys

import h5py
import keras
import numpy as np
import pytest
import sentencepiece
from message_of import message_of
from scipy.special import log_softmax

from kzoo.decoding import GNMT, SearchSettings
from kzoo.decoding.text_reader import Rows
from kzoo.engine import usable_cores
from kzoo.engine.choice import chosen_engine, why_not
from kzoo.engine.conversion import convert, converted
from kzoo.engine.translator import CTranslate2Translator
from kzoo.engine.vocabulary import pieces_of
from kzoo.errors import UserError
from kzoo.files import read_object, write_json
from kzoo.hub import Preset, seal
from kzoo.models import Translator
from kzoo.positions import sine_table
from kzoo.presets import load, locate
from kzoo.presets.assembly import transformer
from kzoo.text import SubwordTokenizer, train_subwords
from kzoo.text.vocabulary import END, NOT_TEXT, START

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
PRESET = "pope_small_multi30k_en_de"
SENTENCES = [
    "A man in an orange hat is starring at something.",
    "Two dogs run.",
    "",
    "A girl.",
    "People walk.",
]
SIZES = {"num_layers": 2, "width": 16, "num_heads": 2, "feedforward_dim": 24, "max_length": 24}
ROUNDING = 1e-4


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """CTranslate2's translator of the preset, which is converted once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KZOO_CACHE", str(tmp_path_factory.mktemp("cache")))
        return CTranslate2Translator(locate(PRESET))


@pytest.fixture(scope="module")
def tokenizers():
    english, german = ["a man", "a dog runs", "the girl"] * 9, ["ein Mann", "ein Hund rennt", "das Kind"] * 9
    one, two = (train_subwords(text, size) for text, size in ((english, 25), (german, 31)))
    return [SubwordTokenizer(model, config_file=f"{i}_tokenizer.json") for i, model in enumerate((one, two))]


def check_same(found, expected):
    """Hypotheses have the same scores; those of another text are ties."""
    for ours, theirs in zip(found, expected, strict=True):
        scores = [[one.score for one in best] for best in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=ROUNDING)
        texts = {one.text for one in ours} ^ {one.text for one in theirs}
        worst = min(scores[1], default=0)
        assert all(one.score < worst + ROUNDING for one in (*ours, *theirs) if one.text in texts)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("pope", {"normalize": True}),
        ("pope", {"first_order": 1, "per_head": False}),
        ("sine", {"max_wavelength": 50}),
        ("learned", {}),
        ("none", {}),
        ("bias", {"max_distance": 64}),
        ("rope", {}),
        ("rope", {"max_wavelength": 50}),
    ],
)
def test_every_position_encoding_has_keras_s_probabilities(encoding, options, norm, tokenizers, tmp_path):
    model = transformer(*tokenizers, **SIZES, position_encoding=encoding, position_options=options, norm=norm)
    random = np.random.default_rng(3)
    model.set_weights([random.normal(0, 0.3, weight.shape) for weight in model.get_weights()])
    model.save_to_preset(tmp_path / "preset")
    model = load(tmp_path / "preset")  # weights in float16
    source, target = random.integers(4, 25, 9), random.integers(4, 31, 12)
    inputs = {"source": np.array([[*source, END]]), "target": np.array([[START, *target]])}
    logits = keras.ops.convert_to_numpy(model(inputs))[0]
    logits[:, NOT_TEXT] = -np.inf  # which no search writes
    expected = [log_softmax(row)[token] for row, token in zip(logits, [*target, END], strict=True)]
    source, target = (
        [[one.id_to_token(token) for token in row]]
        for one, row in zip(tokenizers, (source, target), strict=True)
    )
    [scored] = ctranslate2.Translator(str(converted(Preset(tmp_path / "preset")))).score_batch(source, target)
    np.testing.assert_allclose(scored.log_probs, expected, atol=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"beam_size": 1, "n": 1},
        {"beam_size": 3, "length_penalty": 0.6, "max_length": 30},
        {"split_sentences": True},
    ],
)
def test_the_search_s_arguments_are_keras_s(arguments, engine, shelved):
    texts = [*SENTENCES, "A dog runs. Two men sit on a bench."]
    arguments = {"split_sentences": False, **arguments}
    found = engine.n_best(texts, **arguments)
    check_same(found, shelved(PRESET).n_best(texts, **arguments))


def test_lengths_and_n_grams_are_kept_to(engine, shelved):
    tokenizer = shelved(PRESET).target_tokenizer
    text, count = ["A man and a woman and a man and a woman."], lambda texts: len(tokenizer(texts)[0])
    assert count(engine.translate(text, max_length=6)) <= 5
    assert count(engine.translate(["A dog."], min_length=12)) >= 11
    tokens = tokenizer(engine.translate(text, no_repeat_ngram=1))[0]
    assert len(set(tokens)) == len(tokens)


def test_a_sentence_ends_at_its_own_limit_beside_longer_ones(tokenizers, tmp_path):
    """With random weights, which hardly ever end a translation: compared with CTranslate2, one at a time."""
    model = transformer(*tokenizers, **{**SIZES, "max_length": 96})
    random = np.random.default_rng(4)
    model.set_weights([random.normal(0, 0.3, weight.shape) for weight in model.get_weights()])
    model.save_to_preset(tmp_path / "preset")
    engine, alone = (
        CTranslate2Translator(Preset(tmp_path / "preset")),
        ctranslate2.Translator(str(converted(Preset(tmp_path / "preset")))),
    )
    sentences = [random.integers(4, 25, count).tolist() for count in (3, 20, 40, 5, 60)]
    found = engine.n_best_of_rows(Rows(sentences), 3, SearchSettings(3), engine.direction())
    for sentence, hypotheses, limit in zip(sentences, found, (32, 44, 80, 32, 96), strict=True):
        pieces = [engine.source_tokenizer.vocabulary[token] for token in sentence]
        options = {"beam_size": 3, "num_hypotheses": 3, "length_penalty": 1, "min_decoding_length": 0}
        [result] = alone.translate_batch(
            [pieces], max_decoding_length=limit - 1, return_scores=True, **options
        )
        assert max(map(len, result.hypotheses)) == limit - 1
        np.testing.assert_allclose([one.score for one in hypotheses], result.scores, atol=1e-4)


@pytest.mark.usefixtures("one_shape")
@pytest.mark.parametrize("one_shape", [(32, 48)], indirect=True, ids=["32 rows"])
def test_real_sentences_are_keras_s(engine, shelved, multi30k):
    sentences = multi30k.sentences("test_2016_flickr", "en")[::10]
    translations = engine.translate(sentences)
    assert sum(map(str.__ne__, translations, shelved(PRESET).translate(sentences))) <= 1  # a tie


def test_alignments_are_keras_s(engine, shelved):
    """Long and short sentences in a batch, one without a word, one with too long a translation."""
    pairs = list(
        zip(SENTENCES, ["Ein Mann.", "Zwei Hunde rennen hier.", "Ja.", "Ein Mädchen. " * 99, ""], strict=True)
    )
    found, expected = (one.alignments(pairs) for one in (engine, shelved(PRESET)))
    assert [one is None for one in found] == [False, False, True, True, False]
    for ours, theirs in zip(found, expected, strict=True):
        if ours:
            assert ours[:2] == theirs[:2]
            np.testing.assert_allclose(ours[2], theirs[2], atol=ROUNDING)


def test_terms_are_in_the_translations_of_both(engine, shelved):
    """Another word for one that the model knows, one that it writes itself, and one that does not occur."""
    terms, sentences = {"Dogs": "Köter", "hat": "Hut", "cat": "Katze"}, ["A hat.", "Two dogs run."]
    for translator in (engine, shelved(PRESET)):
        usual, found = (translator.translate(sentences, terms=some) for some in (None, terms))
        assert "Hunde" in usual[1] and found == [usual[0], usual[1].replace("Hunde", "Köter")]
        several = translator.n_best(sentences, terms=terms)[1]
        assert len(several) > 1 and all("Köter" in one.text for one in several)
        assert len({one.text for one in several}) == len(several)
    assert "--prefix" in message_of(translator.translate, ["A dog."], prefixes=["Ein"], terms=terms)


def test_sines_are_keras_hub_s():
    layer = __import__("keras_hub").layers.SinePositionEncoding(max_wavelength=500)
    expected = keras.ops.convert_to_numpy(layer(np.zeros((1, 40, 10), "float32")))[0]
    np.testing.assert_allclose(sine_table(40, 10, 500), expected, atol=1e-5)


def test_a_model_is_converted_once_and_anew_when_the_preset_changes(tokenizers, tmp_path):
    folder, made = tmp_path / "preset", []
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        transformer(*tokenizers, **SIZES).save_to_preset(folder)
        made += [converted(Preset(folder)), converted(Preset(folder))]
    assert made[0] == made[1] != made[2] == made[3]
    (folder / "model.weights.h5").write_bytes(b"damaged")
    assert converted(Preset(folder)) == made[2]  # what was read when it was whole
    (folder / "search.json").write_text('{"beam_size": 9}')  # read at each start
    assert "search.json" in message_of(CTranslate2Translator, Preset(folder))


def test_a_damaged_preset_is_refused(tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES).save_to_preset(tmp_path / "preset")
    (tmp_path / "preset/model.weights.h5").write_bytes(b"damaged")
    with pytest.raises(UserError, match="model.weights.h5"):
        converted(Preset(tmp_path / "preset"))


def test_a_preset_that_is_not_a_translator_s_is_refused(tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES).save_to_preset(tmp_path / "whole")
    shutil.copy(tmp_path / "whole/0_tokenizer.json", tmp_path / "elsewhere.json")
    for number, (name, broken, reason) in enumerate(
        (
            ("config.json", '{"class_name": "TransformerBackbone", "config": {}}', "damaged"),
            ("config.json", "{}", "config.json"),
            ("translator.json", '{"class": "Translator", "tokenizers": ["../elsewhere.json"]}', "elsewhere"),
            ("translator.json", '{"class": "Translator", "tokenizers": null}', "tokenizers"),
            ("translator.json", "{}", "tokenizers"),
        )
    ):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / f"{number}")
        (folder / name).write_text(broken)
        assert f"{name} is altered" in why_not(Preset(folder))
        seal(folder)
        assert reason in why_not(Preset(folder))


@pytest.mark.parametrize(("quota", "cores"), [("150000 100000", 2), ("1000 100000", 1), ("max 100000", 4)])
def test_a_container_s_limit_counts(quota, cores, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4))
    assert usable_cores(tmp_path / "cpu.max") == 4
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert usable_cores(tmp_path / "cpu.max") == cores


def test_a_damaged_conversion_is_named(tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES).save_to_preset(tmp_path / "preset")
    convert(Preset(tmp_path / "preset"), tmp_path / "model")
    for file in ("model.bin", "source.spm"):
        (tmp_path / "model" / file).write_bytes(b"damaged")
        message = message_of(CTranslate2Translator, Preset(tmp_path / "preset"), model=tmp_path / "model")
        assert str(tmp_path / "model") in message and "delete" in message


def test_a_joint_vocabulary_is_read_once(engine):
    source, target = pieces_of(locate(PRESET))
    assert source is target
    assert engine.source_tokenizer is engine.target_tokenizer


def test_tokens_without_pieces_are_refused(tokenizers, tmp_path):
    source, target = tokenizers
    larger = transformer(source_vocabulary_size=40, target_vocabulary_size=40, **SIZES)
    Translator(larger.backbone, source, target).save_to_preset(tmp_path / "preset")
    assert "25 for 40 source tokens" in why_not(Preset(tmp_path / "preset"))


def test_special_pieces_may_have_other_names(tmp_path):
    tokenizers = []
    for side, end in (("source", "</s>"), ("target", "[end]")):
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a man", "a dog runs", "the girl"] * 9),
            model_writer=written,
            vocab_size=25,
            hard_vocab_limit=False,
            eos_piece=end,
            minloglevel=2,
            **{f"{name}_id": number for number, name in enumerate(("pad", "unk", "bos", "eos"))},
        )
        tokenizers.append(SubwordTokenizer(written.getvalue(), config_file=f"{side}_tokenizer.json"))
    translator = transformer(*tokenizers, **SIZES)
    random = np.random.default_rng(3)  # with some weights, the engines differ at the maximum length
    translator.set_weights([random.normal(0, 0.3, weight.shape) for weight in translator.get_weights()])
    translator.save_to_preset(tmp_path / "preset")
    translator = load(tmp_path / "preset")
    texts = ["a dog runs", "the girl"]
    assert CTranslate2Translator(Preset(tmp_path / "preset")).translate(texts) == translator.translate(texts)


def test_only_the_preset_s_own_finite_weights_are_read(tokenizers, tmp_path):
    folder, other = tmp_path / "preset", tmp_path / "other"
    for seed, path in enumerate((folder, other)):
        keras.utils.set_random_seed(seed)
        transformer(*tokenizers, **SIZES).save_to_preset(path)
    expected = CTranslate2Translator(Preset(folder)).n_best(["a dog runs", "the girl"])
    shutil.copy(other / "model.weights.h5", folder / "backup.weights.h5")
    convert(Preset(folder), tmp_path / "model")
    engine = CTranslate2Translator(Preset(folder), model=tmp_path / "model")
    assert engine.n_best(["a dog runs", "the girl"]) == expected
    name = "layers/reversible_embedding/vars/0"
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        values, shape = file[name][()], file[name].shape
        file[name][0] = np.nan
    with pytest.raises(UserError, match=name):
        convert(Preset(folder), tmp_path / "model")
    (tmp_path / "elsewhere").write_bytes(values.tobytes())
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        del file[name]
        file.create_dataset(
            name, shape, values.dtype, external=[(str(tmp_path / "elsewhere"), 0, h5py.h5f.UNLIMITED)]
        )
    with pytest.raises(UserError, match=name):
        convert(Preset(folder), tmp_path / "model")


@pytest.mark.parametrize("activation", ["silu", "tanh"])
def test_an_activation_is_ctranslate2_s_or_keras_s(activation, tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES, activation=activation).save_to_preset(tmp_path / "preset")
    assert (why_not(Preset(tmp_path / "preset")) is None) == (activation == "silu")


@pytest.mark.parametrize(
    ("preset", "reason"),
    [
        ("attention_bridge_m2m_tiny_multi30k", "AttentionBridgeBackbone"),
        ("glyph_tiny_tatoeba_zh_en", "RecurrentBackbone"),
        ("image_text_tiny_scenes_en_de", " only"),
    ],
)
def test_what_the_format_does_not_hold_is_keras_s(preset, reason):
    located, search = locate(preset), SearchSettings()
    assert reason in why_not(located)
    assert chosen_engine("auto", located, search) == "keras"
    with pytest.raises(UserError, match=f"{reason}.*--engine"):
        chosen_engine("ctranslate2", located, search)
    with pytest.raises(UserError, match=reason):
        CTranslate2Translator(located)


def test_what_the_search_lacks_is_keras_s():
    located = locate(PRESET)
    assert why_not(located) is None
    assert chosen_engine("auto", located, SearchSettings()) == "ctranslate2"
    assert chosen_engine("keras", located, SearchSettings()) == "keras"
    for search in (
        SearchSettings(length_penalty=GNMT(0.6)),
        SearchSettings(min_length=4),
        SearchSettings(5, 0),
        SearchSettings(max_length=1),  # the end symbol alone; CTranslate2 writes another token
        SearchSettings(max_length=12),  # cuts sentences, whose end symbol CTranslate2 does not score
    ):
        assert chosen_engine("auto", located, search) == "keras"
    assert chosen_engine("auto", located, SearchSettings(), {"a prefix": "Ein"}) == "keras"


SIZES_TOO_LARGE = [{"num_layers": 10**9}, {"max_length": 10**9}, {"position_options": {"first_order": 10**9}}]


@pytest.mark.parametrize("size", SIZES_TOO_LARGE)
def test_sizes_that_would_fill_the_memory_are_not_converted(size, tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES).save_to_preset(tmp_path)
    config = read_object(tmp_path / "config.json")
    write_json(tmp_path / "config.json", {**config, "config": {**config["config"], **size}})
    seal(tmp_path)
    assert str(10**9) in why_not(Preset(tmp_path))


@pytest.mark.parametrize("name", ["search.json", "assets/0_tokenizer/vocabulary.spm"])
def test_a_file_without_a_checksum_is_not_used(name, tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES).save_to_preset(tmp_path)
    metadata = read_object(tmp_path / "metadata.json")
    del metadata["files"][name]
    write_json(tmp_path / "metadata.json", metadata)
    assert f"no {name}" in message_of(CTranslate2Translator, Preset(tmp_path))


def test_a_hidden_file_needs_no_checksum(tokenizers, tmp_path):
    transformer(*tokenizers, **SIZES).save_to_preset(tmp_path)
    (tmp_path / "assets/0_tokenizer/.DS_Store").touch()
    converted(Preset(tmp_path))
    (tmp_path / "translator.json").write_text("{}")
    assert "translator.json" in message_of(CTranslate2Translator, Preset(tmp_path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_is_refused_instead_of_waiting_for_ever(engine):
    if not (child := os.fork()):
        message = message_of(engine.translate, ["A dog runs."])
        os._exit(7 if "forked" in message else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_refusals(engine):
    for arguments, name in (
        ({"texts": ["a " * 400]}, "subwords"),
        ({"texts": [1]}, "int"),
        ({"texts": ["A."], "n": 9}, "beam_size"),
        ({"texts": ["A."], "length_penalty": GNMT(1)}, "GNMT"),
    ):
        assert name in message_of(engine.n_best, **arguments)
    assert "float16" in message_of(CTranslate2Translator, locate(PRESET), "float16")  # on a CPU
    assert engine.translate(["a " * 400], truncate=True)[0]
    assert engine.translate(["A dog runs."], "en", "de") == ["Ein Hund rennt."]
    assert "'fr'" in message_of(engine.translate, ["A dog runs."], "en", "fr")


def test_the_command_imports_no_deep_learning():
    """Also where torch and transformers are: whoever imports them here fails."""
    code = (
        "import sys\n"
        "heavy = ('keras', 'keras_hub', 'tensorflow', 'jax', 'torch', 'transformers')\n"
        "for name in heavy: sys.modules[name] = None\n"
        f"sys.argv = ['kzoo', 'translate', '{PRESET}', 'A dog runs.']\n"
        "from kzoo.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "Ein Hund rennt.\n", done.stderr


def test_a_missing_ctranslate2_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert "ctranslate2" in message_of(CTranslate2Translator, locate(PRESET))
    with pytest.warns(UserWarning, match="Keras"):
        assert chosen_engine("auto", locate(PRESET), SearchSettings()) == "keras"
