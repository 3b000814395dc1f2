"""What each signature does with a request's columns."""

import msgspec
import numpy as np

from kzoo.models import Hypothesis
from kzoo.serve.checks import check_language
from kzoo.serve.requests import Request
from kzoo.serve.served import Served
from kzoo.serve.split_requests import n_best

# The placeholder for a hypothesis that the search did not find, as in a SavedModel.
NONE = Hypothesis("", -1e9)
# Sentences embedded in one call, after which other requests have their turn.
EMBEDDED = 16


async def predict(served: Served, asked: Request) -> dict[str, list]:
    """Return the outputs of the signature that a request calls, one row for each row of its inputs.

    Args:
        served: the model.
        asked: the request.

    Raises:
        UserError: an input that cannot be used.
        Busy: too many rows are waiting.
    """
    return await CALLS[asked.signature](served, asked)


async def _best(served: Served, asked: Request) -> dict[str, list]:
    found = await _hypotheses(served, asked, 1)
    return {key: [row[0] for row in rows] for key, rows in found.items()}


async def _n_best(served: Served, asked: Request) -> dict[str, list]:
    return await _hypotheses(served, asked, served.beam_size)


async def _hypotheses(served: Served, asked: Request, n: int) -> dict[str, list]:
    columns = asked.columns
    among = {key: columns.get(key) for key in ("source_language", "target_language")}
    among |= {"images": columns.get("image"), "prefixes": columns.get("prefix")}
    found = await n_best(served, columns["text"], n, split_sentences=asked.split_sentences, **among)
    full = [[*hypotheses, *[NONE] * (n - len(hypotheses))] for hypotheses in found]
    return {
        "translation": [[hypothesis.text for hypothesis in row] for row in full],
        "score": [[hypothesis.score for hypothesis in row] for row in full],
    }


async def _embed(served: Served, asked: Request) -> dict[str, list]:
    texts, languages = asked.columns["text"], asked.columns["language"]
    for code in set(languages):
        check_language(code, served.languages)
    await served.check_texts(texts, languages)
    vectors = []
    for start in range(0, len(texts), EMBEDDED):
        some = slice(start, start + EMBEDDED)
        called = served.translator, texts[some], languages[some]
        vectors += await served.run(_embeddings, *called, rows=len(texts[some]))
    served.metrics.sentences.inc(len(texts))
    return {"embedding": vectors}


def _embeddings(translator, texts: list[str], languages: list[str]) -> list:
    k, D = translator.backbone.matrix_shape
    vectors = np.zeros((len(texts), k * D), "float32")
    for language in set(languages):
        mine = [i for i, code in enumerate(languages) if code == language]
        vectors[mine] = translator.embed([texts[i] for i in mine], language)
    # In the model's thread: as Python's objects, the numbers of many would take gigabytes.
    return [msgspec.Raw(msgspec.json.encode(vector.tolist())) for vector in vectors]


CALLS = {"serving_default": _best, "n_best": _n_best, "prefixed": _n_best, "embed": _embed}
