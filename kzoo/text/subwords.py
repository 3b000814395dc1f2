"""Subwords learned from text: SentencePiece's byte-pair encoding, with kzoo's special tokens."""

import io
import unicodedata
from collections.abc import Iterable

import regex
import sentencepiece

from kzoo.errors import JOINERS, UserError
from kzoo.text.preparation import NUMBER, prepare
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

STRAY = 0.01  # if fewer sentences than this share have characters that NFKC replaces, they are stray
INVISIBLE = regex.compile(rf"[[\p{{Zs}}\p{{Cc}}\p{{Cf}}]--[{JOINERS}]]", regex.V1)


def train_subwords(sentences: Iterable[str], vocabulary_size: int) -> bytes:
    """Learn a byte-pair encoding from sentences.

    Sentences are normalized by Unicode's NFKC, here and in the tokenizer: a letter and its accent become one
    character, and every kind of space becomes a plain one. If NFKC would replace other characters in over 1 %
    of the sentences, the text is not normalized, because translations need these characters: full-width
    punctuation in Chinese, a vowel in Thai, joiners in Persian, "…". Numbers such as ½ and ² are never
    normalized: each that occurs is a subword. "▁" (U+2581), SentencePiece's mark for a
    space, becomes a space.

    Args:
        sentences: the sentences of the text; of both languages for a joint vocabulary.
        vocabulary_size: int. Number of subwords, the four special tokens included.

    Returns:
        The SentencePiece model for `SubwordTokenizer`. The same text gives the same model everywhere.

    Raises:
        UserError: the text has too few or too many different subwords for `vocabulary_size`, or a NUL, which
            SentencePiece cannot learn.

    Reference:
        Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units".
        https://arxiv.org/abs/1508.07909
    """
    sentences = [prepare(sentence) for sentence in sentences]
    if not any(sentence.strip() for sentence in sentences):
        raise UserError("cannot learn subwords: there is no text")
    if number := next((n for n, sentence in enumerate(sentences, 1) if "\0" in sentence), None):
        raise UserError(f"sentence {number} has a NUL character, which SentencePiece cannot learn: remove it")
    longest = max(len(sentence.encode("utf-8", "replace")) for sentence in sentences)
    as_it_is = _replaced_by_nfkc(sentences) > len(sentences) * STRAY
    # SentencePiece does not normalize symbols of its user.
    numbers = [] if as_it_is else sorted({number for one in sentences for number in NUMBER.findall(one)})
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocabulary_size,
            character_coverage=1.0,
            max_sentence_length=max(longest, 4192),  # the default leaves out those over 4,192 bytes
            normalization_rule_name="identity" if as_it_is else "nmt_nfkc",
            pad_id=PAD,
            user_defined_symbols=numbers,
            unk_id=UNKNOWN,
            bos_id=START,
            eos_id=END,
            num_threads=1,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:  # ValueError: a size too large for an integer
        reason = str(error).splitlines()[-1].split("] ")[-1].strip()
        if found := regex.search(r"required_chars\. \d+ vs (\d+)", reason):
            reason = f"it has {int(found[1]):,} characters, special tokens included"
        elif found := regex.search(r"Vocabulary size too high .*<= (\d+)", reason):
            reason = f"it is too short, set vocabulary_size to {found[1]} or less"
        raise UserError(
            f"cannot learn vocabulary_size={vocabulary_size} subwords from this text: {reason}"
        ) from None
    return model.getvalue()


def _replaced_by_nfkc(sentences: list[str]) -> int:
    """Return in how many sentences NFKC changes more than accents, spaces and invisible characters."""
    nfkc = sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc", escape_whitespaces=False, add_dummy_prefix=False, remove_extra_whitespaces=True
    )
    normalized = nfkc.normalize([sentence.encode("utf-8", "replace").decode() for sentence in sentences])
    pairs = zip(sentences, normalized, strict=True)
    return sum(new != old and _visible(new) != _visible(old) for old, new in pairs)


def _visible(text: str) -> str:
    """Return a text in NFC without spaces, control characters, and format characters other than joiners."""
    return INVISIBLE.sub("", unicodedata.normalize("NFC", text))
