"""Translates with CTranslate2. Has the methods and the results of `kzoo.models.Translator`."""

import contextlib
import os
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Self, get_args

import numpy as np

from kzoo.decoding.search_settings import SearchSettings, output_limit, padded_length
from kzoo.decoding.text_reader import Rows
from kzoo.decoding.text_translator import TextTranslator
from kzoo.engine import Device, import_ctranslate2, usable_cores
from kzoo.engine.choice import check_supported
from kzoo.engine.conversion import SIDES, as_preset, convert, converted
from kzoo.engine.loaded_models import LoadedModels
from kzoo.errors import UserError, first_line
from kzoo.files import read_object
from kzoo.hub.preset import Preset
from kzoo.text.hypotheses import Hypothesis, as_hypotheses
from kzoo.text.languages import Direction
from kzoo.text.pieces import LanguagePieces, MarianPieces, Subwords
from kzoo.text.vocabulary import END

# Sentences, sorted by length. On a CPU, int8 has 0.8 of the speed with 64. CTranslate2's guide advises large
# batches on a GPU.
BATCH = {"cpu": 24, "cuda": 64}
BLOCK = 4096  # sentences between two calls of `progress`
# Sentences up to this padded length are translated together, with the output limit of the longest. In a batch
# of four, a sentence takes 0.78 of the processor time that it takes alone.
USUAL_LENGTH = 48
# Of the size in float32, by what a compute type's name has; if it has two, the weights are in the first. With
# int8, a small model took 0.32.
FRACTIONS = {"int8": 1 / 3, "16": 1 / 2}


class CTranslate2Translator(TextTranslator):
    """A preset's Transformer, run by CTranslate2: the translations of `Translator`, several times as fast.

    Imports neither Keras nor TensorFlow. The converted model is kept in the cache. Both engines find the
    same hypotheses, except for ties, hypotheses that reach the maximum length, and searches with a minimum
    length, without repeated n-grams, or with α = 0.

    Args:
        preset: as `kzoo.presets.locate` returns it.
        compute_type: of CTranslate2, such as `"float32"` or `"int8"`.
        threads: int. Batches translated at a time; by default one per core, and one on a GPU.
        model: the converted model; by default that of the cache.
        device: `"cpu"`; `"cuda"`, the first GPU; or `"auto"`: that GPU if CTranslate2 can compute on it in
            this type, else the CPU, with a warning if there is a GPU.
        loaded_models: those that it shares a bound of memory with; by default, none.

    Attributes:
        preset: the preset.
        threads: int. Batches translated at a time.
        device: `"cpu"` or `"cuda"`, where it translates.
        size: int. Bytes of the weights in memory.
        source_language, target_language: codes, or `None`.
        search: the default search settings.

    Raises:
        UserError: CTranslate2 cannot be imported, cannot hold the model (`kzoo.engine.choice.why_not`),
            or cannot compute in that type on this device; there is no such device.

    Example:

    >>> CTranslate2Translator(kzoo.presets.locate("pope_small_multi30k_en_de")).translate(["A dog runs."])
    ['Ein Hund rennt.']
    """

    can_unload = True

    def __init__(
        self,
        preset: Preset,
        compute_type: str = "float32",
        threads: int | None = None,
        model: Path | None = None,
        device: Device = "auto",
        loaded_models: LoadedModels | None = None,
    ):
        model = model or converted(preset)
        self.preset, self._process = preset, os.getpid()
        self.search = preset.search
        self.max_length = preset.backbone["config"]["max_length"]
        self.source_tokenizer, self.target_tokenizer = _tokenizers(model)
        self._open, self._model = partial(_opened, model, device, compute_type, threads), None
        # The converted model is in float32; CTranslate2 changes it when it loads it.
        fraction = next((part for name, part in FRACTIONS.items() if name in compute_type), 1)
        self.size = int(sum(path.stat().st_size for path in model.glob("model.bin")) * fraction)
        self._loaded = loaded_models or LoadedModels()
        with self._loaded.using(self):
            self.device, self.threads = self._model.device, self._model.num_translators
        on = " on cuda" if self.device == "cuda" else ""
        self.engine = f"ctranslate2 {compute_type}{on}"
        self.source_language = preset.settings.get("source_language")
        self.target_language = preset.settings.get("target_language")
        self._source_pieces = self.source_tokenizer.vocabulary
        self._target_pieces = self.target_tokenizer.vocabulary
        self._ids = {piece: token for token, piece in enumerate(self._target_pieces)}

    @classmethod
    def of(
        cls,
        translator,
        compute_type: str = "float32",
        threads: int | None = None,
        device: Device = "auto",
    ) -> Self:
        """Return a translator with what a Keras `Translator` has now: weights, tokenizers, languages, search.

        Args:
            translator: the `Translator`. Later changes of it have no effect here.
            compute_type, threads, device: as above.

        Raises:
            UserError: as above; or a preset cannot hold the translator.

        Example:

        >>> fast = CTranslate2Translator.of(kzoo.presets.load("pope_small_multi30k_en_de"))
        >>> fast.translate(["A dog runs."])
        ['Ein Hund rennt.']
        """
        with contextlib.ExitStack() as folders:
            preset = folders.enter_context(as_preset(translator))
            check_supported(preset)
            model = Path(folders.enter_context(tempfile.TemporaryDirectory())) / "model"
            convert(preset, model)
            made = cls(preset, compute_type, threads, model, device)
            # It reads them again: the model after it was unloaded, the preset for what only Keras does.
            weakref.finalize(made, folders.pop_all().close)
        return made

    def check_search(self, search: SearchSettings):
        check_supported(search=search)

    def n_best_of_rows(
        self,
        rows: Rows,
        n: int,
        search: SearchSettings,
        direction: Direction,
        progress: Callable[[int], None] | None = None,
        threads: int = 2,
    ) -> list[list[Hypothesis]]:
        if rows.prefixes:
            raise UserError("CTranslate2 is not used with prefixes: use engine keras")
        tokens = rows.tokens
        prefix = [self._target_pieces[token] for token in self.language_tokens(direction[1])]
        found, groups = [None] * len(tokens), {}
        for number, sentence in enumerate(tokens):
            if sentence:
                limit = output_limit(search, self.length_of_batch(len(sentence)), self.max_length)
                groups.setdefault(limit, []).append(number)
        for limit, numbers in groups.items():
            for first in range(0, len(numbers), BLOCK):
                block = numbers[first : first + BLOCK]
                results = self._call([tokens[number] for number in block], search, limit, prefix)
                for number, result in zip(block, results, strict=True):
                    length = padded_length(len(tokens[number]), self.max_length)
                    own = output_limit(search, length, self.max_length)
                    # This search reached the sentence's own limit, where it might have ended differently.
                    if own < limit and max(map(len, result.hypotheses)) >= own - 2:
                        (result,) = self._call([tokens[number]], search, own, prefix)
                    rows = [[*(self._ids[piece] for piece in row), END] for row in result.hypotheses]
                    found[number] = rows, result.scores
                if progress is not None:
                    progress(len(block))
        return as_hypotheses(found, n, self.target_tokenizer)

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None and self._model.model_is_loaded

    def load(self):
        """Load the model. Each call that needs it does, too."""
        if self._model is None:
            self._model = self._open()
        else:
            self._model.load_model()

    def unload(self):
        """Free the model's memory. No call may use it."""
        while self._model.num_active_batches:  # it is still ending a call, and would unload nothing
            time.sleep(0.001)
        self._model.unload_model()

    def unload_if_idle(self, seconds: float):
        """Free the model's memory if it has not translated for some seconds. The next call loads it again."""
        self._loaded.unload_if_idle(self, seconds)

    def _attended(self, pairs, direction):
        sources = [[self._source_pieces[token] for token in source] for source, _ in pairs]
        targets = [[self._target_pieces[token] for token in target] for _, target in pairs]
        # A search that begins with the whole translation, and ends behind it.
        results = self._translate_batch(
            sources,
            target_prefix=targets,
            max_batch_size=BATCH[self.device],
            beam_size=1,
            max_decoding_length=max(map(len, targets), default=1),
            max_input_length=0,
            return_attention=True,
        )
        for source, target, result in zip(sources, targets, results, strict=True):
            rows = np.array(result.attention[0][: len(target)], "float32")
            yield source, target, rows.reshape(len(target), len(source))

    def length_of_batch(self, count: int) -> int:
        """Return the padded length of the longest sentences in a batch with one of `count` tokens."""
        return padded_length(max(count, USUAL_LENGTH - 1), self.max_length)

    def _call(self, tokens: list[list[int]], search: SearchSettings, limit: int, prefix: list[str]) -> list:
        """Return CTranslate2's results, with all hypotheses of the beam, for sentences of one limit.

        The translations begin with the pieces of `prefix`.
        """
        return self._translate_batch(
            [[self._source_pieces[token] for token in sentence] for sentence in tokens],
            target_prefix=[prefix] * len(tokens) if prefix else None,
            max_batch_size=BATCH[self.device],
            num_hypotheses=search.beam_size,
            return_scores=True,
            max_input_length=0,
            **search_arguments(search.changed(max_length=limit)),
        )

    def _translate_batch(self, sentences: list[list[str]], **options) -> list:
        if os.getpid() != self._process:  # it would wait for threads that a forked process lacks
            raise UserError("CTranslate2 does not work in a forked process: create the translator in it")
        with self._loaded.using(self):
            return self._model.translate_batch(sentences, **options)


def search_arguments(search: SearchSettings) -> dict:
    """Return CTranslate2's `translate_batch` arguments for a search that `why_not` accepts.

    It has a `max_length`.
    """
    return {
        "beam_size": search.beam_size,
        "length_penalty": search.length_penalty.alpha,
        # CTranslate2 counts lengths without the end symbol.
        "min_decoding_length": max(search.min_length - 1, 0),  # CTranslate2's default is 1
        "max_decoding_length": max(search.max_length - 1, 1),
        "no_repeat_ngram_size": search.no_repeat_ngram,
    }


def _tokenizers(model: Path) -> list[Subwords | MarianPieces | LanguagePieces]:
    """Return the tokenizers of both sides of a converted model; of a joint vocabulary, the same one."""
    subwords, made = cache(Subwords), []
    try:
        for side in SIDES:
            proto, options = (model / f"{side}.spm").read_bytes(), model / f"{side}.json"
            if options.is_file():  # each has a language of its own
                options = read_object(options)
                made.append((LanguagePieces if "names" in options else MarianPieces)(proto, **options))
            else:
                made.append(subwords(proto))
    except (UserError, RuntimeError, OSError) as error:
        raise _unreadable(model, error) from None
    return made


def _opened(model: Path, device: Device, compute_type: str, threads: int | None):
    """Return a converted model on its device, as CTranslate2's `Translator`."""
    ctranslate2 = import_ctranslate2()
    if device not in get_args(Device):
        raise UserError(f"device must be one of {', '.join(get_args(Device))}, not {device!r}")
    found = device != "cpu" and ctranslate2.get_cuda_device_count()
    if device == "cuda" and not found:
        raise UserError("CTranslate2 finds no CUDA device: choose device cpu or auto (--device)")
    if found:
        try:
            # On a GPU, each of these threads would be a CUDA stream.
            opened = ctranslate2.Translator(
                str(model), "cuda", compute_type=compute_type, inter_threads=threads or 1
            )
            opened.translate_batch([["."]], max_decoding_length=1)  # loads cuBLAS, which may be missing
            return opened
        except (RuntimeError, ValueError) as error:
            reason = f"CTranslate2 cannot compute in {compute_type} on the GPU ({first_line(error)})"
            if device == "cuda":
                raise UserError(f"{reason}: choose device cpu (--device)") from None
            warnings.warn(f"{reason}; it uses the CPU instead", stacklevel=3)
    try:
        return ctranslate2.Translator(
            str(model), compute_type=compute_type, inter_threads=threads or usable_cores(), intra_threads=1
        )
    except (RuntimeError, OSError) as error:
        raise _unreadable(model, error) from None
    except ValueError as error:
        raise UserError(f"CTranslate2 cannot compute in {compute_type} here: {error}") from None


def _unreadable(model: Path, error: Exception) -> UserError:
    """Return the error of a damaged conversion, or one for a newer CTranslate2."""
    return UserError(f"{model} cannot be read ({error}): delete it, and kzoo converts again")
