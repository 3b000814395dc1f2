#!/usr/bin/env bash
# SentencePiece rewrites ordinary letters of Bengali, Hindi, Thai, Lao and Korean, and sacreBLEU counts them as errors.
#
# An expert expects: the usual normalization, `nmt_nfkc`, changes rare forms (full-width letters, ligatures), and leaves
# alone what people type every day: a text that is encoded and decoded is the text. So a perfect translation scores 100.
# What happens: Bengali য় and ড় and Hindi क़ and ड़, one code point each, come back as two (Unicode excludes them from
# composition); Thai ำ and Lao ຳ, which keyboards type as one, too; Korean ㅋㅋ comes back as other letters (conjoining
# jamo), and ㅋㅋㅏ as ㅋ카. They look the same or nearly so. sacreBLEU compares code points and normalizes nothing.
# Why it matters: a model can only write the second form. Against references as people type them, a perfect system loses
# more than half of BLEU on such sentences, and a search in its output for a word that is typed finds nothing. Normalize the
# references as well (by the model's own `normalize`), or train with `normalization_rule_name=identity`.
#
# Versions: sentencepiece 0.2.3, sacrebleu 2.6.0. Source: Unicode Standard Annex 15 (composition exclusions),
# sentencepiece's doc/normalization.md.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sentencepiece==0.2.3 sacrebleu==2.6.0

"$folder/venv/bin/python" - <<'PYTHON'
import io

import sacrebleu
import sentencepiece

print("sentencepiece", sentencepiece.__version__, "sacrebleu", sacrebleu.__version__)
TEXTS = {
    "bn": "মেয়েটি একটি বড় বাড়ির সামনে দাঁড়িয়ে আছে।",
    "hi": "लड़का सड़क पर बड़ी गाड़ी के पीछे दौड़ रहा है।",
    "th": "ผู้หญิงคนหนึ่งกำลังทำงานในน้ำ",
    "lo": "ຂ້ອຍກຳລັງເຮັດວຽກຢູ່ໃນນ້ຳ",
    "ko": "진짜 웃기다 ㅋㅋㅋ 너무 슬프다 ㅠㅠ",
    "de": "Ein Mädchen läuft über die große Straße.",
}
ONE_CODE_POINT = {"\u09a1\u09bc": "\u09dc", "\u09a2\u09bc": "\u09dd", "\u09af\u09bc": "\u09df", "\u0921\u093c": "\u095c"}
for language, text in TEXTS.items():
    for two, one in ONE_CODE_POINT.items():  # as many keyboards write these letters
        text = text.replace(two, one)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text]),
        model_writer=model,
        vocab_size=100,
        hard_vocab_limit=False,
        character_coverage=1.0,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = processor.encode(text)
    assert processor.unk_id() not in ids
    back = processor.decode(ids)
    bleu = sacrebleu.corpus_bleu([back], [[text]]).score
    chrf = sacrebleu.corpus_chrf([back], [[text]]).score
    print(f"{language}: {text}\n    {back}\n    {len(text)} -> {len(back)} code points, BLEU {bleu:.1f}, chrF {chrf:.1f}")
    assert (back == text) == (language == "de")
    assert (chrf < 90) == (language != "de")
PYTHON
