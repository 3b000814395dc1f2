"""A preset that answers requests: checks them, and translates many clients' sentences together."""

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kzoo.engine import engine_name
from kzoo.errors import UserError
from kzoo.serve.batching import Batcher
from kzoo.serve.images import decoded_images
from kzoo.serve.limits import MAX_BATCH, Direction, Limits, checked_directions
from kzoo.serve.metrics import Metrics
from kzoo.text.texts import Hypothesis, SplitTexts, several_sentences, tokenize_prefixes

if TYPE_CHECKING:  # Keras is not imported for CTranslate2
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.models import Translator

log = logging.getLogger("kzoo.serve")

BROKEN = "the model cannot translate; the server's log says why"
PREPARING = "the model is being prepared; translations take longer until it is ready"
SMALL = 512  # bytes or characters that are checked in a few milliseconds at most


@dataclass(frozen=True)
class Prepared:
    """A request's texts, checked and ready for the search.

    Args:
        split: their sentences.
        rows: of each sentence, the key of its batches, and the row, as the engine's `rows` returns them.
        targets: the code of each text's target language.
        images: of each text, as the model reads it.
    """

    split: SplitTexts
    rows: list[tuple[tuple, tuple]]
    targets: list[str | None]
    images: list[np.ndarray | None]

    def joined(self, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Return the hypotheses of the texts, given those of each sentence."""
        return self.split.join(found, self.targets)


class Served:
    """A preset that answers requests, with dynamic batching: waiting sentences are translated together.

    The model runs in its own threads while the event loop takes requests. Call `start` and `stop` in that
    event loop.

    Args:
        translator: Keras's or CTranslate2's. CTranslate2's loads Keras when a request needs attention or a
            prefix.
        name: str. The model's name for clients.
        version: int. The model's version, as in TensorFlow Serving.
        beam_size: int. Hypotheses kept by beam search, the same for all requests; by default that of the
            translator's `search`, which the rest of the search is taken from.
        max_batch: int. Maximum sentences per batch; 1 turns batching off.
        max_wait: float. Maximum milliseconds that a sentence waits for others while a thread is free.
        limits: what requests may hold.
        length_penalty: as in `Translator.translate`, with the same default.
        folder: the preset's, whose card and scores the page shows.

    Raises:
        UserError: the name cannot be part of a URL, or the batch size is out of range.
    """

    def __init__(
        self,
        translator: "Translator | CTranslate2Translator",
        name: str,
        version: int = 1,
        beam_size: int | None = None,
        max_batch: int = 16,
        max_wait: float = 0.0,
        limits: Limits | None = None,
        length_penalty: float | Callable | None = None,
        folder: Path | None = None,
    ):
        if not name or set(name) & set("/:?#"):
            raise UserError(f"a model's name must not be empty or contain '/', ':', '?' or '#': {name!r}")
        if not 1 <= max_batch <= MAX_BATCH:
            raise UserError(f"a batch has 1 to {MAX_BATCH} sentences, not {max_batch}")
        self.translator, self.name, self.version, self.folder = translator, name, version, folder
        self.settings = translator.search.changed(beam_size=beam_size, length_penalty=length_penalty)
        self.limits = limits or Limits()
        self.engine = engine_name(translator)
        self.metrics = Metrics(self.engine)
        self.ready = self.broken = False
        if self.engine == "keras":
            from kzoo.serve.keras_search import KerasSearch as Search
        else:
            from kzoo.serve.engine_search import EngineSearch as Search
        self._engine = Search(translator, self.settings, max_batch)
        self._batcher = Batcher(
            self._search,
            self._engine.sizes,
            max_wait / 1000,
            self.limits.queue,
            self.metrics,
            self._engine.threads,
            slow=self._engine.slow,
        )
        self._warming = self._loading = None
        self._warned = False  # that a text of several sentences came unsplit

    @property
    def max_length(self) -> int:
        """The most tokens that the model reads or writes, with the end symbol."""
        return self._engine.max_length

    @property
    def readiness(self) -> str:
        """Why the usual shapes are not compiled; `""` when they are."""
        return "" if self.ready else BROKEN if self.broken else PREPARING

    async def start(self):
        """Start taking requests while the model is tried, and its usual shapes are compiled.

        `ready` says when that is done, `broken` that it failed.
        """
        self._batcher.start()
        self._warming = asyncio.create_task(self._warm_up())

    def give_up(self):
        """Refuse the rows that wait, and all that come, with `Busy`; running batches are finished."""
        self._warming.cancel()
        self._batcher.give_up()

    async def stop(self):
        """Wait for running batches; rows still waiting are `Busy`."""
        self.give_up()
        await self._batcher.stop()

    async def n_best(
        self,
        texts: list[str],
        n: int = 1,
        source_language: str | list[str] | None = None,
        target_language: str | list[str] | None = None,
        images: Sequence | None = None,
        prefixes: list[str] | None = None,
        split_sentences: bool | None = False,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each text, best first, batched with other requests'.

        Args:
            n: int. At most the beam size.

        The other arguments, and the errors, are those of `prepared`.
        """
        languages = source_language, target_language
        return await self.search(await self.prepared(texts, *languages, images, prefixes, split_sentences), n)

    async def prepared(
        self,
        texts: list[str],
        source_language: str | list[str] | None = None,
        target_language: str | list[str] | None = None,
        images: Sequence | None = None,
        prefixes: list[str] | None = None,
        split_sentences: bool | None = False,
    ) -> Prepared:
        """Return texts checked, split and ready for `search`.

        Args:
            texts: sentences; an empty one translates to an empty one.
            source_language: code, or one for each sentence, for a multilingual preset; else not needed.
            target_language: the same.
            images: an image for each text if the preset reads them, as in `decoded_images`.
            prefixes: for each text a text that its translations begin with; `""` for none.
            split_sentences: as in `Translator.translate`; the warning is given once, to the log.

        Raises:
            UserError: the request is invalid.
            Busy: too many rows are waiting.
        """
        directions = checked_directions(self.translator, len(texts), source_language, target_language)
        begun = [""] * len(texts) if prefixes is None else prefixes
        for column in (texts, begun):
            self.limits.check_texts(column)
        size = sum(map(len, [*texts, *begun])) if images is None else sys.maxsize
        asked = texts, directions, images, begun, split_sentences
        with self._batcher.room(len(texts)):
            return await self.beside(self._prepared, *asked, size=size)

    async def search(self, prepared: Prepared, n: int) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each prepared text, best first.

        Raises: as `search_sentences`.
        """
        return prepared.joined(await self.search_sentences(prepared, n))

    async def search_sentences(self, prepared: Prepared, n: int) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each sentence of the prepared texts, best first.

        Raises:
            UserError: more than the beam has are asked for.
            Busy: too many rows are waiting.
        """
        if not 1 <= n <= self.settings.beam_size:
            raise UserError(f"1 to {self.settings.beam_size} best translations are available, not {n}")
        found = await self._batcher.submit(prepared.rows)
        self.metrics.sentences.inc(len(prepared.rows))
        return [hypotheses[:n] for hypotheses in found]

    async def run(self, function: Callable, *args, rows: int = 1):
        """Return `function(*args)`, any other call of the model, in its own thread, one at a time.

        Args:
            function: called with `args`.
            rows: int. Number of sentences that it takes.

        Raises:
            Busy: too many rows are waiting.
        """
        return await self._batcher.run(function, *args, rows=rows)

    async def check_texts(self, texts: list[str], languages: list[str | None]):
        """Reject texts, each in its language, that are too many, too long, or not text: before `run`.

        Raises:
            UserError: names the first invalid text by its number in the request.
        """
        self.limits.check_texts(texts)
        nothing = [""] * len(texts)
        directions = [(language, None) for language in languages]
        with self._batcher.room(len(texts)):
            rows = texts, directions, nothing, nothing
            await self.beside(self._engine.rows, *rows, size=sum(map(len, texts)))

    async def beside(self, function: Callable, *args, size: int):
        """Return `function(*args)`, for reading and checking what a client sent.

        It is called at once for what is small, else in a thread, where it does not delay small requests.

        Args:
            size: int. Number of bytes or characters that the function reads.
        """
        return function(*args) if size <= SMALL else await self._batcher.beside(function, *args)

    def _prepared(
        self,
        texts: list[str],
        directions: list[Direction],
        images: Sequence | None,
        prefixes: list[str],
        split_sentences: bool | None,
    ) -> Prepared:
        sources, targets = ([direction[side] for direction in directions] for side in (0, 1))
        if split_sentences is None and not self._warned and several_sentences(texts, sources):
            self._warned = True
            log.warning(
                "a text has several sentences; the model may skip some. To translate each, send "
                '"split_sentences": true (logged once)'
            )
        split = SplitTexts(texts, sources, bool(split_sentences))
        sentences, prefixes = split.sentences, split.prefixes(prefixes)
        self.limits.check_count(len(sentences))
        directions = [directions[number] for number in split.text_of]
        images = decoded_images(images, len(texts), self.translator.image_shape)
        rows = self._engine.rows(
            sentences, directions, [images[number] for number in split.text_of], prefixes
        )
        self._check_prefixes(prefixes, [target for _, target in directions])
        return Prepared(split, rows, targets, images)

    def _check_prefixes(self, prefixes: list[str], languages: list[str | None]):
        """Reject texts that no translation can begin with, each in its target language."""
        most, translator = self.max_length, self.translator
        for prefix, code in zip(prefixes, languages, strict=True):
            if prefix:
                several = translator.multilingual
                tokenizer = translator.tokenizers[code] if several else translator.target_tokenizer
                tokenize_prefixes(tokenizer, [prefix], min(self.settings.max_length or most, most) - 1)

    def keras_translator(self) -> "Translator | None":
        """Return Keras's translator, which draws attention; `None` while it loads, which a first call begins.

        Raises:
            Exception: why the last try to load it failed; the next call tries again.
        """
        if self.engine == "keras":
            return self.translator
        if self._loading is None:
            self._loading = asyncio.create_task(self._batcher.run(self._engine.keras_translator))
        if not self._loading.done():
            return None
        loading = self._loading
        if loading.cancelled() or loading.exception():
            self._loading = None
        return loading.result()

    def _search(self, key: tuple, rows: list) -> list[list[Hypothesis]]:
        """Translate a batch of one direction and one padded length; called in a model's thread.

        Raises:
            RuntimeError: the model's scores are not finite.
        """
        try:
            return self._engine.search(key, rows)
        except UserError as error:  # requests have been checked: the model is at fault, not a client
            raise RuntimeError(str(error)) from error

    async def _warm_up(self):
        """Translate sentences of the usual lengths, so that the first clients do not wait for compilation."""
        batches = self._engine.usual()

        async def compile_some():
            for key, rows in batches:
                await self._batcher.in_model_thread(self._search, key, rows)

        try:
            await asyncio.gather(*(compile_some() for _ in range(self._batcher.threads)))
        except Exception:
            log.exception("the model cannot translate")
            self.broken = True
        else:
            log.info("ready: %s", self.engine)
            self.ready = True
