#!/usr/bin/env bash
# Eole's validation BLEU compares wrong sentences after a blank line, and `eole predict` leaves blank lines out.
#
# An expert expects: a blank line of a file to translate gives a blank line, so output and input stay side by side. In
# validation, a row with a blank side counts for nothing; the others are scored against their own references.
# What happens: `eole predict` writes fewer lines than it read, and says nothing. In validation, translations of blank
# source lines are left out, but not their references, and blank references, but not their translations: all that
# follow are compared with their neighbours. One blank line in 20 takes the same model from BLEU 100 to 14. A warning
# names the line, as for the loss, which is right. References also end at U+2028 and U+0085, unlike the training text.
# sacreBLEU scores lists of different length without an error.
# Why it matters: BLEU may decide which checkpoint is kept, and when training stops. In back-translation, output is put
# beside the file that was translated, and each pair behind the blank line is wrong. Take out such rows before.
#
# Versions: eole 0.6.4, sacrebleu 2.6.0, torch 2.13.0. Source: eole/utils/scoring_utils.py, `translate` (references);
# eole/inputters/text_utils.py, `transform_bucket`; github.com/mjpost/sacrebleu, issue 220 (different lengths).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet eole==0.6.4 torch==2.13.0 aiohttp==3.14.5 sentencepiece==0.2.2 sacrebleu==2.6.0

cd "$folder"
cat > train.py <<'PYTHON'
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import sentencepiece

print("eole", version("eole"), "sacrebleu", version("sacrebleu"), "torch", version("torch"))
WHO = {"A dog": "Ein Hund", "A man": "Ein Mann", "Two men": "Zwei Männer", "A woman": "Eine Frau"}
WHO["The boy"] = "Der Junge"
DOES = {"runs": "rennt", "sleeps": "schläft", "sits on a bench": "sitzt auf einer Bank"}
DOES["eats 3 apples"] = "isst 3 Äpfel"
ENGLISH = [f"{who} {does}." for who in WHO for does in DOES]
GERMAN = [f"{who} {does}." for who in WHO.values() for does in DOES.values()]


def eole(*arguments):
    command = [sys.executable, "-m", "eole.bin.main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-2000:]
    return done.stderr + done.stdout


def write(name, english, german):
    for code, lines in (("en", english), ("de", german)):
        Path(f"{name}.{code}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"path_src": f"{name}.en", "path_tgt": f"{name}.de"}


def score(name, english, german):
    """Train the same model on the same text, and return its BLEU on these rows."""
    width = {"hidden_size": 32, "heads": 2, "transformer_ff": 32, "layers": 1}
    model = {"architecture": "transformer", **width, "share_embeddings": True, "share_decoder_embeddings": True}
    model["embeddings"] = {"word_vec_size": 32, "position_encoding_type": "SinusoidalInterleaved"}
    training = {"train_steps": 300, "valid_steps": 300, "save_checkpoint_steps": 300, "model_path": f"model_{name}"}
    training |= {"batch_type": "sents", "batch_size": 10, "bucket_size": 64, "optim": "adam", "learning_rate": 0.01}
    training |= {"dropout": [0.0], "attention_dropout": [0.0], "compute_dtype": "fp32", "num_workers": 0}
    training |= {"world_size": 0, "gpu_ranks": []}
    subwords = {"src_subword_model": "subwords.model", "tgt_subword_model": "subwords.model"}
    config = {"seed": 1, "overwrite": True, "save_data": f"data_{name}", "src_vocab": "vocabulary.txt", "share_vocab": True}
    config |= {"transforms": ["sentencepiece"], "transforms_configs": {"sentencepiece": subwords}}
    config |= {"data": {"train": write("train", ENGLISH, GERMAN), "valid": write(name, english, german)}}
    config |= {"training": training, "model": model, "valid_metrics": ["BLEU"]}
    Path(f"{name}.yaml").write_text(json.dumps(config))  # JSON is YAML
    bleu = float(re.findall(r"validation BLEU: ([\d.]+)", eole("train", "-config", f"{name}.yaml"))[-1])
    print(f"{name}: BLEU {bleu:.1f}")
    return bleu


sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(ENGLISH + GERMAN), model_prefix="subwords", model_type="bpe", vocab_size=120,
    hard_vocab_limit=False, minloglevel=2, unk_id=0, bos_id=-1, eos_id=-1, pad_id=-1,
)  # fmt: skip
subwords = sentencepiece.SentencePieceProcessor(model_file="subwords.model")
Path("vocabulary.txt").write_text("\n".join(subwords.id_to_piece(i) for i in range(1, len(subwords))) + "\n")
assert score("as_written", ENGLISH, GERMAN) > 99
assert score("blank_source_line", ENGLISH[:2] + [""] + ENGLISH[3:], GERMAN) < 40
assert score("blank_reference", ENGLISH, GERMAN[:2] + [""] + GERMAN[3:]) < 40
separated = GERMAN[:4] + [GERMAN[4].replace(" ", "\u2028", 1)] + GERMAN[5:]
assert score("separator_in_a_reference", ENGLISH, separated) < 60

Path("input.txt").write_text("A dog runs.\n\nA man sleeps.\n")
eole("predict", "-model_path", "model_as_written", "-src", "input.txt", "-output", "output.txt", "-world_size", "0")
print("three lines, the second blank, become", Path("output.txt").read_text().splitlines())
assert Path("output.txt").read_text() == "Ein Hund rennt.\nEin Mann schläft.\n"
PYTHON
"$folder/venv/bin/python" train.py
