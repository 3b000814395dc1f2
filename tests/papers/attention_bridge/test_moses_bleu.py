"""BLEU of plain text, of Moses's tokens, and of tokens with escapes."""

import pytest
from sacrebleu import corpus_bleu

from training.attention_bridge.moses_bleu import score_forms

FRENCH = ["L'herbe est « verte »."], ["Dans l'herbe, l'eau est verte."]
# Written by hand, by Moses's rules for French: quotation marks become ", and an elision keeps its apostrophe.
TOKENS = ['l\' herbe est " verte " .'], ["dans l' herbe , l' eau est verte ."]
ESCAPED = (
    ["l&apos; herbe est &quot; verte &quot; ."],
    ["dans l&apos; herbe , l&apos; eau est verte ."],
)


def test_each_form_is_scored_as_it_is_written():
    plain = [[text.lower() for text in side] for side in FRENCH]
    assert score_forms(*FRENCH, "fr") == {
        form: pytest.approx(corpus_bleu(sides[0], [sides[1]], force=True).score)
        for form, sides in {"plain text": plain, "tokens": TOKENS, "escaped tokens": ESCAPED}.items()
    }
