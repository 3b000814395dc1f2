"""A run's vocabularies."""

import pytest

from kzoo.data import open_corpus
from kzoo.errors import UserError
from kzoo.training.vocabularies import learned_subwords

THAI = ["ผู้ชายดื่มน้ำ", "เด็กเล่นอยู่ในสวน", "ผู้หญิงอ่านหนังสือ"]


@pytest.mark.parametrize("text", ["lowercased", "truecased"])
def test_moses_s_form_of_a_language_that_it_takes_apart_is_refused(tmp_path, text):
    with pytest.raises(UserError, match="not for language 'th', .* only 0 of 3 sentences .* text = 'raw'"):
        learned_subwords(tmp_path, "th", THAI, 40, text, "th")
    assert not list(tmp_path.glob("subwords*"))
    tokenizer = learned_subwords(tmp_path, "th", THAI, 40)
    assert tokenizer.detokenize(tokenizer(THAI)) == THAI


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "id", "zh"])
def test_moses_s_form_is_for_the_languages_of_scenes(tmp_path, language):
    sentences = open_corpus("scenes").sentences("val", language)
    tokenizer = learned_subwords(tmp_path, language, sentences, 600, "lowercased", language)
    assert tokenizer.language == language
