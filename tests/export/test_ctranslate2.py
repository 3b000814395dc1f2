"""CTranslate2 models against `translate`: the same words, but for ties."""

import json
import os
import sys

import keras
import numpy as np
import pytest
import sentencepiece
from message_of import message_of

from kzoo.decoding import GNMT, SearchSettings
from kzoo.export import export_ctranslate2
from kzoo.models import Translator
from kzoo.models.transformer import ADDED_POSITIONS
from kzoo.presets import attention_bridge_bilingual_tiny, pope_tiny
from kzoo.presets.assembly import transformer
from kzoo.text import MosesSubwordTokenizer, SubwordTokenizer, train_subwords
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
SENTENCES = ["A man in an orange hat is starring at something.", "Two dogs run.", "A girl.", "People walk."]
# Rounding changed the score of a hypothesis, mean log P a word, by 8e-6 at most; another search changed the
# best score by 1e-3 and more.
ROUNDING = 1e-4


@pytest.fixture
def translator(shelved):
    return shelved("pope_small_multi30k_en_de")


def n_best(folder, compute_type, sentences, n=5):
    """Return CTranslate2's `n` best texts and scores of each sentence, called as docs/serving.md says."""
    source, target = (
        sentencepiece.SentencePieceProcessor(str(folder / f"{side}.spm")) for side in ("source", "target")
    )
    engine = ctranslate2.Translator(str(folder), compute_type=compute_type)
    found = engine.translate_batch(
        source.encode(sentences, out_type=str),
        max_batch_size=32,
        num_hypotheses=n,
        return_scores=True,
        **json.loads((folder / "translate_batch.json").read_text()),
    )
    return [target.decode(result.hypotheses) for result in found], [result.scores for result in found]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_translates_as_translate_does(translator, precision, tmp_path):
    export_ctranslate2(translator, tmp_path / "model", precision)
    ours = translator.translate(SENTENCES)
    theirs = [texts[0] for texts in n_best(tmp_path / "model", precision, SENTENCES)[0]]
    if precision == "float32":
        assert theirs == ours
    else:  # near: the first sentences' words are mostly the same
        assert len(set(" ".join(theirs).split()) & set(" ".join(ours).split())) > 10
        sizes = [sum(file.stat().st_size for file in (tmp_path / "model").glob("model.bin"))]
        assert sizes[0] < 4 * translator.count_params() / 2


@pytest.mark.usefixtures("one_shape")
@pytest.mark.parametrize("one_shape", [(32, 48)], indirect=True, ids=["32 rows"])
def test_searches_as_translate_does(translator, multi30k, tmp_path):
    """All five hypotheses have the same scores, so that one with another text is a tie.

    On 200 sentences; with KZOO_SLOW=1 on 1,000.
    """
    sentences = multi30k.sentences("test_2016_flickr", "en")[:: 1 if os.environ.get("KZOO_SLOW") else 5]
    export_ctranslate2(translator, tmp_path / "model")
    theirs = each_text_once(*n_best(tmp_path / "model", "float32", sentences))
    ours = translator.n_best(sentences, 5)
    others = check_same_scores(theirs, ours)
    assert others < 0.001 * 5 * len(sentences)  # a tie needs two words as likely to the fifth digit


def each_text_once(texts: list, scores: list) -> list[list[tuple[str, float]]]:
    """Return each sentence's texts with their scores, without those whose text a better one has."""
    rows = []
    for best in zip(texts, scores, strict=True):
        row = {}
        for text, score in zip(*best, strict=True):
            row.setdefault(text, score)
        rows.append(list(row.items()))
    return rows


def check_same_scores(theirs: list, ours: list) -> int:
    """Compare the scores of each sentence's hypotheses; return how many have another text."""
    others = 0
    for row, best in zip(theirs, ours, strict=True):
        scores = [hypothesis.score for hypothesis in best]
        np.testing.assert_allclose([score for _, score in row], scores, atol=ROUNDING)
        others += sum(text != one.text for (text, _), one in zip(row, best, strict=True))
    return others


SMALL = {
    "num_layers": 1,
    "width": 16,
    "num_heads": 2,
    "feedforward_dim": 24,
    "dropout": 0.0,
    "max_length": 64,
}


# Each norm with each kind of position, and each of both with one vocabulary or two.
@pytest.mark.usefixtures("one_shape")
@pytest.mark.parametrize(
    ("norm", "position_encoding", "vocabularies"),
    [
        ("pre", "pope", 2),
        ("post", "pope", 1),
        ("pre", "sine", 1),
        ("post", "sine", 2),
        ("pre", "learned", 2),
        ("post", "learned", 1),
        ("pre", "bias", 2),
    ],
)
def test_every_form_scores_as_translate_does(norm, position_encoding, vocabularies, random, tmp_path):
    tokenizers = [
        SubwordTokenizer(train_subwords(SENTENCES * 5, 40 + 4 * side), config_file=f"{side}.json")
        for side in range(vocabularies)
    ]
    translator = transformer(*tokenizers, norm=norm, position_encoding=position_encoding, **SMALL)
    backbone = translator.backbone
    for weight in backbone.trainable_weights:  # biases and norms too, which are 0 and 1 at first
        weight.assign(weight + 0.1 * random.normal(size=weight.shape))
    # As if trained, the end comes soon; padding, unknown and start are probable, but never written.
    post = backbone.decoder_layers[-1].feedforward_residual.layer_norm
    last = backbone.decoder_norm if norm == "pre" else post
    words, gamma, beta = (
        np.array(keras.ops.convert_to_numpy(v))
        for v in (backbone.target_embedding.embeddings, last.gamma, last.beta)
    )
    words[:, 0], words[[END, PAD, UNKNOWN, START], 0] = 0, (0.8, 3, 3, 3)
    gamma[0], beta[0] = 0, 6
    backbone.target_embedding.embeddings.assign(words)
    last.gamma.assign(gamma)
    last.beta.assign(beta)
    export_ctranslate2(translator, tmp_path / "model")
    theirs = each_text_once(*n_best(tmp_path / "model", "float32", SENTENCES))
    check_same_scores(theirs, translator.n_best(SENTENCES, 5))
    assert np.ptp([score for best in theirs for _, score in best]) > 0.1
    for precision in ("float16", "int8"):
        export_ctranslate2(translator, tmp_path / precision, precision)
        texts, _ = n_best(tmp_path / precision, "int8" if precision == "int8" else "float32", SENTENCES)
        assert not any("\u2047" in text for best in texts for text in best)


def test_the_search_is_written_where_ctranslate2_has_it(translator, tmp_path):
    translator = Translator(translator.backbone, translator.source_tokenizer)
    translator.search = SearchSettings(6, 0.5)
    export_ctranslate2(translator, tmp_path / "model")
    texts, scores = n_best(tmp_path / "model", "float32", SENTENCES[1:])
    ours = translator.n_best(SENTENCES[1:], 5)
    assert texts == [[hypothesis.text for hypothesis in best] for best in ours]
    expected = [[hypothesis.score for hypothesis in best] for best in ours]
    np.testing.assert_allclose(scores, expected, atol=ROUNDING)
    translator.search = SearchSettings(max_length=5)  # four words and the end
    export_ctranslate2(translator, tmp_path / "short")
    texts, _ = n_best(tmp_path / "short", "float32", SENTENCES)
    assert max(len(words) for best in texts for words in translator.target_tokenizer(best)) == 4
    # Greedy: of what it rules out, CTranslate2 gives the probability to the other words.
    translator.search = SearchSettings(1, min_length=12, no_repeat_ngram=1)
    export_ctranslate2(translator, tmp_path / "long")
    texts, _ = n_best(tmp_path / "long", "float32", SENTENCES, 1)
    assert [best[0] for best in texts] == translator.translate(SENTENCES)


@pytest.mark.parametrize("name", ["max_length", "min_length", "no_repeat_ngram", "length_penalty"])
def test_a_beam_search_that_finds_other_translations_is_warned_of(name, tmp_path):
    translator = small()
    translator.search = SearchSettings(**{name: 0 if name == "length_penalty" else 2})
    with pytest.warns(UserWarning, match=f"{name}.* beam"):
        export_ctranslate2(translator, tmp_path / "model")


def test_a_translation_that_does_not_end_has_the_model_s_length(tmp_path, random):
    translator = small()
    translator.set_weights([random.normal(0, 0.5, weight.shape) for weight in translator.get_weights()])
    export_ctranslate2(translator, tmp_path / "model")
    texts, _ = n_best(tmp_path / "model", "float32", ["A girl."])
    most = translator.backbone.max_length - 1  # before the end symbol
    assert max(map(len, translator.target_tokenizer(texts[0]))) in (
        most,
        most + 1,
    )  # a text begins with a space


def small(tokenizer=None, **options):
    tokenizer = tokenizer or SubwordTokenizer(train_subwords(SENTENCES * 5, 40))
    return pope_tiny(tokenizer, **{**SMALL, "max_length": 16, **options})


def quantized():
    """A translator whose integers mean nothing without their scales."""
    translator = small()
    translator.quantize("int8")
    return translator


def wide():
    translator = small()
    translator.set_weights([weight + 70_000 for weight in translator.get_weights()])
    return translator


def searching_as_gnmt():
    translator = small()
    translator.search = SearchSettings(length_penalty=GNMT(0.6))
    return translator


def of_own_positions():
    return small(position_encoding="own", position_options={})


def of_two_languages():
    proto = train_subwords(SENTENCES * 5, 40)
    names = {code: f"{code}_tokenizer.json" for code in ("en", "de")}
    tokenizers = {code: SubwordTokenizer(proto, config_file=file) for code, file in names.items()}
    return attention_bridge_bilingual_tiny(tokenizers)


def of_an_own_class():
    class Mine(Translator):
        pass

    translator = small()
    return Mine(translator.backbone, translator.source_tokenizer)


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.parametrize(
    ("make", "precision", "name"),
    [
        (
            lambda: small(position_encoding="rope", position_options={"scaling_factor": 2}),
            "float32",
            "position_options",
        ),
        (lambda: small(position_options={"per_head": True}), "float32", "'per_head': True"),
        (of_own_positions, "float32", "position_encoding='own'"),
        (of_an_own_class, "float32", "Mine"),
        (of_two_languages, "float32", "Transformers"),
        (
            lambda: small(MosesSubwordTokenizer(train_subwords(SENTENCES * 5, 60), "en")),
            "float32",
            "MosesSubwordTokenizer",
        ),
        (searching_as_gnmt, "float32", "--length-penalty"),
        (quantized, "float32", "quantized"),
        (small, "int4", "'int4'"),
        (wide, "float16", "float16"),
    ],
)
def test_what_the_format_does_not_hold_is_named(make, precision, name, tmp_path, monkeypatch):
    monkeypatch.setitem(ADDED_POSITIONS, "own", ADDED_POSITIONS["sine"])
    assert name in message_of(export_ctranslate2, make(), tmp_path / "model", precision)
    assert not (tmp_path / "model").exists()


def test_a_missing_ctranslate2_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert "install ctranslate2" in message_of(export_ctranslate2, small(), tmp_path / "model")


def test_a_folder_with_other_contents_is_kept(tmp_path):
    (tmp_path / "precious").write_text("keep")
    assert str(tmp_path) in message_of(export_ctranslate2, small(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
