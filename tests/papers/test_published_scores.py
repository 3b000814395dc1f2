"""The main tables of the results pages and of the presets' cards say what the score files say."""

import csv
import json
import tomllib
from pathlib import Path
from statistics import fmean, stdev

BRIDGE, GLYPH, IMAGE, OWN, POPE = sorted(Path(__file__).parents[2].glob("training/*/RESULTS.md"))
BRIDGE_CARD, GLYPH_CARD, IMAGE_CARD, POPE_CARD = sorted(Path(__file__).parents[2].glob("presets/*/README.md"))
POPE_TINY = ("pope_tiny", "sine_tiny", "rope_tiny")
METRICS = {"BLEU": "bleu", "BLEU, lowercased": "bleu_lowercased", "chrF2": "chrf2", "TER": "ter"}


def test_own_text():
    systems = {"kzoo": "kzoo", "Eole, tuned": "eole_tuned", "JoeyNMT, tuned": "joeynmt_tuned"}
    for pairs, rows in {"3,000": 1, "10,000": 3, "29,000": 1}.items():
        for row, system in list(systems.items())[:rows]:
            file = f"scores/multi30k_en_de_{pairs.replace(',', '')}_10min_{system}_1.json"
            for metric in ("BLEU", "chrF2"):
                check(OWN, f"{pairs} pairs, 10 minutes", 0, row, metric, [read(OWN, file, metric)])

    settings = {"dropout 0.3, `steps=3600`": "chosen_3600", "dropout 0.3": "chosen"}
    settings |= {"`model.dropout=0.4`": "dropout_0.4", "`bpe_dropout=0.1`": "bpe_dropout_0.1"}
    settings |= {"`consistency=5.0 steps=4700` (R-Drop)": "r_drop_5"}
    for row, name in settings.items():
        for metric in ("BLEU", "chrF2"):
            check(OWN, "Longer runs", 0, row, metric, [read(OWN, "scores/settings_5000.json", name, metric)])
    for metric in ("BLEU", "chrF2"):
        ours = [read(OWN, "scores/multi30k_en_fr_5000_10min_kzoo_1.json", metric)]
        row = "as chosen, `--minutes 10`: dropout 0.2, batches of 512 tokens, `capitals=0`"
        check(OWN, "Longer runs", 0, row, metric, ours)
    rows = {"dropout 0.3": "dropout_0.3", "dropout 0.2": "dropout_0.2", "dropout 0.1": "dropout_0.1"}
    rows |= {"dropout 0.1, `tokens=512`": "dropout_0.1_tokens_512"}
    cells = {f"5,000 | {settings} | 10": ("minutes_5000", key) for settings, key in rows.items()}
    for dropout in ("0.1", "0.2"):
        long = f"dropout {dropout}, `tokens=512` | 30"
        cells[f"5,000 | {long}"] = "minutes_5000", f"30min_dropout_{dropout}_tokens_512"
        small = f"dropout {dropout}, `tokens=512`, 2+2 layers of width 192 | 10"
        cells[f"5,000 | {small}"] = "minutes_5000", f"small_dropout_{dropout}"
    for dropout in ("0.1", "0.3"):
        cells[f"29,000 | dropout {dropout} | 10"] = "minutes_29000", f"dropout_{dropout}"
    for row, (file, key) in cells.items():
        for metric in ("BLEU", "chrF2"):
            ours = [read(OWN, f"scores/{file}.json", key, metric)]
            check(OWN, "Dropout in short runs", 0, row, metric, ours)
    for row, name in {"0.3, `capitals=0.05`": "dropout_0.3", "0.2, `capitals=0`": "dropout_0.2_none"}.items():
        for metric in ("BLEU", "chrF2"):
            ours = [read(OWN, "scores/capitals_3000.json", name, metric)]
            check(OWN, "Capitals in short runs", 1, f"dropout {row}", metric, ours)
    runs = {"`capitals=0.05`, as kzoo chooses for longer runs": ["chosen_1", "chosen_2"]}
    runs |= {"`capitals=0`": ["none_1", "none_2"], "`capitals=0.05 cooldown=0.4`": ["cooldown_0.4_1"]}
    for row, names in runs.items():
        for metric in ("BLEU", "chrF2"):
            ours = [read(OWN, "scores/capitals_5000.json", name, metric) for name in names]
            check(OWN, "Capitals in short runs", 0, row, metric, ours)
    tuned = {
        "0 | the preset": "before",
        "100 | as chosen: 60 epochs, batches of 256 tokens": "100_chosen",
        "100 | `tokens=1024`": "100_tokens_1024",
        "100 | `tokens=1024 epochs=10`": "100_tokens_1024_epochs_10",
        "100 | `rate=1e-3`": "100_rate_1e-3",
        "100 | `lora=8 rate=1e-3 tokens=1024 epochs=10`": "100_lora",
        "1,000 | as chosen: 10 epochs, batches of 1,024 tokens": "1000_chosen",
        "1,000 | `tokens=256`": "1000_tokens_256",
        "1,000 | `rate=2e-4`": "1000_rate_2e-4",
        "1,000 | `lora=8 rate=1e-3`": "1000_lora",
        "10,000 | `epochs=4`": "10000_epochs_4",
    }
    for row, name in tuned.items():
        for metric in ("BLEU", "chrF2", "test_2016_flickr"):
            check(OWN, "Fine-tuning", 0, row, metric, [read(OWN, "scores/tuning.json", name, metric)])
    best = read(OWN, "search/multi30k_en_fr_5000_10min_recipe_5.json", "BLEU")
    check(OWN, "A random search", 0, "5", "BLEU", [best])


def test_pope():
    rows = {"learned_tiny": ["learned", "learned_2"], "bias of the scores (Eq. 11), tiny": ["bias", "bias_2"]}
    rows |= {"pope in each head, tiny": ["heads"], "pope_base": ["pope_base"], "sine_base": ["sine_base"]}
    for split in ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "all"):
        for row, names in {**rows, **{tiny: [f"{tiny}_10"] for tiny in POPE_TINY}}.items():
            heading = "Base size (Table 1)" if "base" in row else "BLEU by position encoding (Table 1)"
            ours = [read(POPE, f"scores/{name}.json", "scores", split, "bleu") for name in names]
            check(POPE, heading, 0, row, split, ours)
        for name in ("pope", "rope", "sine"):
            ours = [read(POPE, "scores/small.json", name, run, "scores", split, "bleu") for run in (0, 1)]
            check(POPE, "Sine and rotary positions with the same recipe", 0, f"{name}_small", split, ours)
        for column, metric in METRICS.items():
            ours = [read(POPE_CARD, "scores.json", "scores", split, metric)]
            check(POPE_CARD, "Scores", 0, split, column, ours)
            check(POPE, "Small size, tuned for small data", 0, split, column, ours)
            again = [read(POPE, "scores/pope_small_repeat.json", "scores", split, metric)]
            check(POPE, "Small size, tuned for small data", 1, split, column, again)
    curves = {name: [name.removesuffix("_tiny"), name.replace("tiny", "again")] for name in POPE_TINY}
    for name in POPE_TINY:
        curves[name].append(name.replace("tiny", "10"))
    for row, names in {**curves, **rows}.items():
        if "base" not in row:
            ours = [validation_bleu(POPE, f"curves/{name}.csv", epoch=10) for name in names]
            check(POPE, "BLEU by position encoding (Table 1)", 0, row, "validation", ours)
    for column in ("BLEU", "BLEU, lowercased"):
        ours = [
            read(POPE, f"scores/{file}.json", "scores", "all", METRICS[column])
            for file in ("pope_small", "pope_small_repeat")
        ]
        ours.append(read(POPE_CARD, "scores.json", "scores", "all", METRICS[column]))
        for name in ("pope", "pope, float32"):
            ours += [
                read(POPE, "scores/small.json", name, run, "scores", "all", METRICS[column]) for run in (0, 1)
            ]
        check(POPE, "Small size, tuned for small data", 0, "all; seven runs", column, ours)


def test_attention_bridge():
    paper = tomllib.loads(BRIDGE.with_name("paper.toml").read_text("utf-8"))["table1"]
    settings = {"M-2-M": ["m2m", "m2m_2"], "M-2-M + mono": ["m2m_mono", "m2m_mono_2"]}
    settings |= {"{de, fr, cs} ↔ en": ["centre_en"], "{de, fr, cs} ↔ en + mono": ["centre_en_mono"]}
    for pair, theirs in paper["m2m_mono"].items():
        source, target = pair.split("-")
        card = read(BRIDGE_CARD, "scores.json", "scores", pair)
        base = read(BRIDGE, "scores/m2m_base.json", "scores", pair)
        check(BRIDGE_CARD, "Scores", 0, source, target, [card["bleu"]])
        check(BRIDGE, "The pretrained model (Table 1)", 0, source, target, [card["bleu_lowercased"]], theirs)
        check(BRIDGE, "At the paper's size (Table 1)", 0, source, target, [base["bleu_lowercased"]], theirs)
        forms = read(BRIDGE, "scores/moses_bleu.json", "scores", pair)
        columns = ("plain text, as in all our tables", "tokens", "escaped tokens")
        for column, bleu in zip(columns, forms.values(), strict=True):
            check(BRIDGE, "The paper's measure", 0, f"{source} → {target}", column, [bleu])
        for model, names in settings.items():
            ours = [read(BRIDGE, f"scores/{name}.json", "scores", pair, "bleu_lowercased") for name in names]
            heading, theirs = "The settings at equal updates (Table 1)", paper[names[0]][pair]
            check(BRIDGE, heading, 2, f"{source} → {target}", model, ours, theirs)
    equal, left_out = "The settings at equal updates (Table 1)", "A pair left out (Figure 1)"
    for row, name in {"no bridge": "bilingual", "bridge": "bilingual_bridge"}.items():
        for pair in ("en-de", "de-en"):
            runs = [read(BRIDGE, "scores/bilingual.json", f"{name}_{pair}, seed {n}") for n in (1, 2)]
            said = (
                ", ".join(f"{run['bleu_lowercased']:.1f}" for run in runs)
                + f" ({paper[name][pair] + 1e-9:.1f})"
            )
            [cells] = [
                row_ for row_ in table_of(BRIDGE, equal, 1) if row_[0] == f"bilingual, {row}, two seeds"
            ]
            assert cells[2 + (pair == "de-en")] == said
    for pair in ("de-fr", "fr-de"):
        column = pair.replace("-", " → ")
        score = read(BRIDGE, "scores/without_de_fr.json", "scores", pair, "bleu_lowercased")
        check(BRIDGE, left_out, 0, "M-2-M + mono without German ↔ French", column, [score])
        score = read(BRIDGE, "scores/bilingual.json", f"bilingual_{pair}, seed 1", "bleu_lowercased")
        check(BRIDGE, left_out, 0, "bilingual, no bridge", column, [score], paper["bilingual"][pair])


def test_senteval_s_pytorch_variant():
    paper = tomllib.loads(BRIDGE.with_name("paper.toml").read_text("utf-8"))["table2"]["M-2-M"]
    ours = read(BRIDGE, "scores/senteval_pytorch.json", "the shelf's")
    other = read(BRIDGE, "scores/senteval.json", "the shelf's")
    for task, scores in ours.items():
        columns = {"PyTorch": scores["accuracy"], "scikit-learn, as above": [fmean(other[task]["accuracy"])]}
        columns |= {"seeds": [len(scores["accuracy"])], "paper: M-2-M": [paper[task] + 1e-9]}
        for column, values in columns.items():
            check(BRIDGE, "SentEval's PyTorch variant", 0, task, column, values)


def test_glyph():
    sizes = {"EMB": "", "fc_2": " (F = 512)", "cnn_fc_relu": " (F = 1,024)", "cnn_softmax_fc": " (F = 4,096)"}
    forty = ["scores/glyph_tatoeba_tiny.json", "scores/glyph_tatoeba_tiny_2.json"]
    for name, size in sizes.items():
        ten = [read(GLYPH, f"scores/seed_{seed}.json", name) for seed in ("1", "2", "2_cpu")]
        for label, split in {"validation": "val", "test": "test"}.items():
            check(GLYPH, "Translation (Tables 4 and 5)", 1, label, name, [run[label]["bleu"] for run in ten])
            ours = [read(GLYPH, file, name, "scores", split, "bleu") for file in forty]
            check(GLYPH, "Forty epochs", 0, name + size, label, ours)
    card = read(GLYPH_CARD, "scores.json", "scores", "test")
    for column, metric in METRICS.items():
        check(GLYPH_CARD, "Scores", 0, "this model", column, [card[metric]])


def test_other_glyph_encoders():
    heading, seed_1 = "The other encoders of Table 4", "scores/seed_1.json"
    for name, default in {"cnn_fc_relu": "1,024", "cnn_softmax_fc": "4,096"}.items():
        for features in ("F = 256", "512", "1,024", "2,048", "4,096"):
            number = features.removeprefix("F = ")
            key = name if number == default else f"{name}:{number.replace(',', '')}"
            if key in read(GLYPH, seed_1):
                check(GLYPH, heading, 0, name, features, [read(GLYPH, seed_1, key, "test", "bleu")])
    for name in ("EMB", "cnn_relu", "fc_1"):
        check(GLYPH, heading, 1, name, "test", [read(GLYPH, seed_1, name, "test", "bleu")])


def test_glyph_taggers():
    said, tests = {}, ("simplified", "traditional")
    for number, file in enumerate(("tagging", "tagging_2")):
        taggers = {}
        for name, row in read(GLYPH, f"scores/{file}.json").items():
            taggers.setdefault(tuple(name.split(", ")[:2]), []).append(row)
        for name, rows in taggers.items():
            for place, test in enumerate(tests):
                f1 = [row[test]["f1"] for row in rows]
                runs = f" ({', '.join(f'{value:.1f}' for value in f1)})" if len(f1) > 1 else ""
                said.setdefault(name, ["fails"] * 4)[2 * place + number] = f"{fmean(f1):.1f}{runs}"
    rows = table_of(GLYPH, "Tagging (Table 6)", 0)[2:]
    assert {tuple(row[:2]): row[2:6] for row in rows} == said


def test_word_similarity():
    files = [read(GLYPH, f"scores/{name}.json") for name in ("word_similarity", "word_similarity_2")]
    said = {}
    for name in files[0]:
        words, encoder = name.split(", ")
        for column in ("seen", "unseen_without", "unseen_with"):
            both = [file[name][column] for file in files]
            cell = f"{both[0]['spearman']:.1f}, {both[1]['spearman']:.1f} ({both[0]['pairs']})"
            n_a = encoder == "EMB" and column == "unseen_with"
            said.setdefault((words, encoder), []).append("n/a" if n_a else cell)
    rows = table_of(GLYPH, "Word similarity (Table 7)", 0)[2:]
    assert {tuple(row[:2]): row[2:5] for row in rows} == said


def test_image_text():
    for model, row, row_of_card in [
        ("text_only_tiny, test", "text_only_tiny", "a model trained without pictures"),
        ("image_text_tiny, test, right pictures", "image_text_tiny | right", "right pictures"),
        ("image_text_tiny, test, shuffled", "image_text_tiny | shuffled", "shuffled pictures"),
        ("image_text_tiny, test, none", "image_text_tiny | none (grey)", "grey pictures"),
    ]:
        columns = {"BLEU": "bleu", "chrF2": "chrf2", "accuracy on ambiguous words": "accuracy"}
        for column, metric in columns.items():
            ours = [run[metric] for run in read(IMAGE, "scores/scenes_en_de.json", "scores", model)]
            check(IMAGE, "Does the model use the picture? (Scenes)", 0, row, column, ours)
            of_card = column.replace("ambiguous", "these")
            check(IMAGE_CARD, "Scores", 0, row_of_card, of_card, ours[:1])


def test_sizes_of_presets():
    for card in (BRIDGE_CARD, GLYPH_CARD, IMAGE_CARD, POPE_CARD):
        megabytes = sum(file.stat().st_size for file in card.parent.rglob("*") if file.is_file()) / 1e6
        assert f"parameters, {megabytes:.2g} MB (float16)" in " ".join(card.read_text("utf-8").split()), card


def read(page, file, *keys):
    """Return what a page's JSON file has under keys. In a list of scores, a split or direction is a key."""
    found = json.loads((page.parent / file).read_text("utf-8"))
    for key in keys:
        if isinstance(found, list) and isinstance(key, str):
            found = {f"{s['source']}-{s['target']}" if "source" in s else s["split"]: s for s in found}
        found = found[key]
    return found


def validation_bleu(page, file, epoch):
    """Return the validation BLEU of an epoch in a page's history."""
    with open(page.parent / file, newline="") as history:
        [bleu] = [float(row["val_bleu"]) for row in csv.DictReader(history) if row["epoch"] == str(epoch)]
    return bleu


def check(page, heading, place, row, column, ours, paper=None):
    """Compare a cell with our mean ± deviation and the paper's number. `row` is its first cells."""
    head, _, *rows = table_of(page, heading, place)
    first = row.split(" | ")
    [cells] = [cells for cells in rows if cells[: len(first)] == first]
    cell = cells[head.index(column)]
    digits = len(cell.split()[0].partition(".")[2])
    said = f"{fmean(ours):.{digits}f}" + (f" ± {stdev(ours):.{digits}f}" if len(ours) > 1 else "")
    said += f" ({paper + 1e-9:.{digits}f})" if paper else ""  # halves rounded up
    assert cell == said, f"{page}, {heading}: {row}, {column}"


def table_of(page, heading, place):
    """Return the rows of a heading's table as lists of cells, without asterisks. Place 0: its first table."""
    section = page.read_text("utf-8").replace("*", "").split(f"# {heading}\n")[1].split("\n##")[0]
    table = [part for part in section.split("\n\n") if part.startswith("|")][place].splitlines()
    return [[cell.strip() for cell in line.removeprefix("|").split(" |")[:-1]] for line in table]
