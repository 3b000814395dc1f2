"""sacreBLEU's BLEU as a language needs it: validation and scores use it."""

from sacrebleu.metrics import BLEU

from kzoo.text.languages import has_spaces, has_two_kinds_of_i, is_chinese, lower_case


def bleu_metric(language: str, lowercase: bool = False) -> BLEU:
    """Return sacreBLEU's BLEU for a target language.

    Its tokenizer is zh for Chinese, char for other languages without spaces, 13a for all others.
    """
    tokenizer = "zh" if is_chinese(language) else "13a" if has_spaces(language) else "char"
    kind = TurkishBLEU if lowercase and has_two_kinds_of_i(language) else BLEU
    return kind(tokenize=tokenizer, lowercase=lowercase)


class TurkishBLEU(BLEU):
    """Lowercased BLEU with Turkish lowercasing, which sacreBLEU lacks."""

    def _preprocess_segment(self, sent: str) -> str:
        # Private: sacreBLEU has no public hook before it tokenizes.
        return super()._preprocess_segment(lower_case(sent, "tr"))
