"""CTranslate2 models against `translate`: the same words, but for ties."""

import pytest
import sentencepiece

from kzoo.errors import UserError
from kzoo.export import export_ctranslate2
from kzoo.presets import attention_bridge_bilingual_tiny, load, pope_tiny, rope_tiny
from kzoo.text import MosesSubwordTokenizer, train_subwords

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
SENTENCES = ["A man in an orange hat is starring at something.", "Two dogs run.", "A girl.", "People walk."]


@pytest.fixture(scope="module")
def translator():
    return load("pope_tiny_multi30k_en_de")


def translations(folder, compute_type):
    """Return what CTranslate2 makes of the sentences."""
    source, target = (
        sentencepiece.SentencePieceProcessor(str(folder / f"{side}.spm")) for side in ("source", "target")
    )
    engine = ctranslate2.Translator(str(folder), compute_type=compute_type)
    found = engine.translate_batch(source.encode(SENTENCES, out_type=str), beam_size=5, length_penalty=1)
    return target.decode([result.hypotheses[0] for result in found])


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_translates_as_translate_does(translator, precision, tmp_path):
    export_ctranslate2(translator, tmp_path / "model", precision)
    ours = translator.translate(SENTENCES)
    theirs = translations(tmp_path / "model", precision)
    if precision == "float32":
        assert theirs == ours
    else:  # near: the first sentences' words are mostly the same
        assert len(set(" ".join(theirs).split()) & set(" ".join(ours).split())) > 10
        sizes = [sum(file.stat().st_size for file in (tmp_path / "model").glob("model.bin"))]
        assert sizes[0] < 4 * translator.count_params() / 2


def test_what_the_format_does_not_hold_is_named(translator, tmp_path):
    with pytest.raises(UserError, match="position_encoding='rope'"):
        export_ctranslate2(rope_tiny(source_vocabulary_size=50), tmp_path / "model")
    with pytest.raises(UserError, match="Transformers that read text only"):
        export_ctranslate2(attention_bridge_bilingual_tiny(vocabulary_size=50), tmp_path / "model")
    sizes = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16}
    moses = MosesSubwordTokenizer(train_subwords(SENTENCES * 5, 60), "en")
    with pytest.raises(UserError, match="not a MosesSubwordTokenizer"):
        export_ctranslate2(pope_tiny(moses, **sizes), tmp_path / "model")
    with pytest.raises(UserError, match="not 'int4'"):
        export_ctranslate2(translator, tmp_path / "model", "int4")
    assert not (tmp_path / "model").exists()
