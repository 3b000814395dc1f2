"""A preset that answers requests: it checks them, and translates sentences of many clients together."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kzoo.decoding.text_reader import Prepared
from kzoo.decoding.text_translator import WITH_TERMS
from kzoo.errors import UserError
from kzoo.hub.preset import Preset, direction_key
from kzoo.serve.batching import Batcher
from kzoo.serve.inputs import Limits, decoded_images
from kzoo.serve.metrics import Metrics
from kzoo.serve.searches import EngineSearch, KerasSearch
from kzoo.serve.startup import check_model_name
from kzoo.text.glossary import Glossary
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.sentences import SplitTexts

if TYPE_CHECKING:  # Keras is not imported for CTranslate2
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.models import Translator

log = logging.getLogger("kzoo.serve")

BROKEN = "the model cannot translate; the server's log says why"
PREPARING = "the model is being prepared; translations take longer until it is ready"
LOOK_SECONDS = 5.0  # between two looks at whether the model is idle
ALIGNED = 16  # sentences that one call aligns with their translations: other requests wait less
SMALL = 512  # bytes or characters that take at most a few milliseconds to check


class Served:
    """A preset that answers requests, with dynamic batching.

    The model runs in its own threads. Call `start` and `stop` in the event loop that takes requests.

    Args:
        translator: Keras's or CTranslate2's. CTranslate2's loads Keras when a request needs attention or a
            prefix. All requests use its `search`.
        name: str. The model's name for clients.
        version: int. The model's version, as in TensorFlow Serving.
        max_batch: int. Maximum sentences per batch; 1 turns batching off.
        max_wait: float. Maximum milliseconds that a sentence waits for others while a thread is free.
        limits: of requests.
        preset: the preset. The page shows its card and scores; without it, no translation is marked as
            doubtful.
        start_keras: function called before CTranslate2's translator loads Keras, in a thread of the model.
        metrics: of the server, which the presets that it serves share; by default, the preset's own.
        keep: float. Minutes without a request after which the model leaves the memory until the next one;
            `None`: it stays.
        glossaries: each for a direction, whose translations then keep to its terms, unless they begin with a
            prefix; `None` in a direction is any language.

    Attributes:
        readiness: `""` once the usual shapes are compiled; before that, the reason.
        batcher: runs the model.

    Raises:
        UserError: the name cannot be part of a URL; `max_wait` is over an hour; CTranslate2 does not support
            the search; `keep` with Keras's translator; glossaries for a model that takes no terms.
    """

    def __init__(
        self,
        translator: "Translator | CTranslate2Translator",
        name: str,
        version: int = 1,
        max_batch: int = 16,
        max_wait: float = 0.0,
        limits: Limits | None = None,
        preset: Preset | None = None,
        start_keras: Callable[[], None] = lambda: None,
        metrics: Metrics | None = None,
        keep: float | None = None,
        glossaries: Sequence[Glossary] = (),
    ):
        check_model_name(name)
        if not 0 <= max_wait <= 3_600_000:  # `threading` cannot wait much longer
            raise UserError(f"max_wait must be from 0 to 3,600,000 milliseconds, not {max_wait}")
        if keep is not None and not translator.can_unload:
            raise UserError(f"{name} runs on Keras, which cannot unload a model: leave keep (--keep) out")
        if glossaries and not translator.takes_terms:
            raise UserError(f"{name}: terms (--terms) need {WITH_TERMS}")
        self.translator, self.name, self.version, self.preset = translator, name, version, preset
        self._keep, self._glossaries = keep, glossaries
        self.settings, self.limits = translator.search, limits or Limits()
        # Another beam or penalty than the preset's gives other scores.
        self._low_scores = preset.low_scores if preset and preset.search == self.settings else {}
        self.engine = translator.engine
        self.metrics = metrics or Metrics(self.engine)
        self.readiness = PREPARING
        if translator.runs_on_keras:
            engine = KerasSearch(translator, self.settings, max_batch)
        else:
            engine = EngineSearch(translator, self.settings, max_batch, start_keras)
        self._engine = engine
        self.max_length = engine.max_length
        self.batcher = Batcher(self._search, engine, max_wait / 1000, self.limits.queue, self.metrics)
        self._warming = self._loading = self._unloading = None

    async def start(self):
        """Start taking requests, and compile the usual shapes meanwhile."""
        self.batcher.start()
        self._checks = ThreadPoolExecutor(1, "checks")
        self._warming = asyncio.create_task(self._warm_up())
        if self._keep is not None:
            self._unloading = asyncio.create_task(self._unload_when_idle(60 * self._keep))

    def give_up(self):
        """Reject all waiting and new rows with `Busy`; running batches continue."""
        self._warming.cancel()
        if self._unloading:
            self._unloading.cancel()
        self.batcher.give_up()

    async def stop(self):
        """Reject waiting rows with `Busy`, and wait for the running batches."""
        self.give_up()
        await self.batcher.stop()
        await asyncio.to_thread(self._checks.shutdown, cancel_futures=True)

    async def prepared(
        self,
        texts: list[str],
        directions: list[Direction],
        images: Sequence | None = None,
        prefixes: list[str] | None = None,
        split_sentences: bool = False,
        unknown: str = "copy",
    ) -> Prepared:
        """Return texts split and prepared for `search`.

        Args:
            texts: sentences that `Limits.check_texts` has let pass; an empty one translates to an empty one.
            directions: for each text, what the translator's `direction` returns.
            images: an image for each text if the preset reads images, as in `decoded_images`.
            prefixes: for each text, the beginning of its translations; `""` for none.
            split_sentences: bool. Whether to translate each sentence of a text by itself.
            unknown: what becomes of sentences that are mostly unknown, as in `translate`.

        Raises:
            UserError: the request is invalid.
            Busy: too many rows are waiting.
        """

        def prepare() -> Prepared:
            split = SplitTexts(texts, directions, split_sentences, self.translator.codes_in_text)
            self.limits.check_count(len(split.sentences))
            decoded = decoded_images(images, self.translator.image_shape)
            others = {"images": decoded, "prefixes": prefixes, "unknown": unknown}
            return self.translator.prepared(split, self.settings, **others)

        size = sum(map(len, [*texts, *(prefixes or [])])) if images is None else sys.maxsize
        with self.batcher.reserved(len(texts)):
            return await self.in_thread(prepare, size=size)

    async def search(self, prepared: Prepared, n: int) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each sentence of a request's texts, best first.

        Raises:
            UserError: `n` is above the beam size.
            Busy: too many rows are waiting.
        """
        if not 1 <= n <= self.settings.beam_size:
            raise UserError(f"1 to {self.settings.beam_size} best translations are available, not {n}")
        rows = list(self._rows(prepared))
        found = prepared.restored(await self.batcher.submit(rows))
        self.metrics.sentences.inc(len(rows))
        if self._glossaries:
            await self._put_terms(prepared, found, n)
        return [hypotheses[:n] for hypotheses in found]

    async def _put_terms(self, prepared: Prepared, found: list[list[Hypothesis]], n: int):
        """Replace the hypotheses of sentences with terms by those that have the terms' translations.

        Those with a prefix stay: terms might change it.
        """
        split, prefixes = prepared.split, prepared.rows.prefixes or [[]] * len(found)

        def with_terms() -> list[tuple[int, Glossary]]:
            glossaries = [self._glossary(direction) for direction in split.directions]
            rows = enumerate(zip(split.text_of, split.sentences, prefixes, strict=True))
            chosen = [
                (row, glossaries[text], sentence) for row, (text, sentence, prefix) in rows if not prefix
            ]
            return [(row, own) for row, own, sentence in chosen if own and own.occurrences(sentence)]

        rows = await self.in_thread(with_terms, size=sum(map(len, split.sentences)))
        for glossary in dict.fromkeys(own for _, own in rows):
            mine = [row for row, own in rows if own is glossary]
            for first in range(0, len(mine), ALIGNED):
                some = mine[first : first + ALIGNED]
                texts, hypotheses = ([given[row] for row in some] for given in (split.sentences, found))
                new = await self.batcher.run(self.translator.with_terms, texts, hypotheses, n, glossary)
                for row, best in zip(some, new, strict=True):
                    found[row] = best

    def _glossary(self, direction: Direction) -> Glossary | None:
        """Return the glossary for a direction, if any."""
        return next((glossary for glossary in self._glossaries if glossary.fits(direction)), None)

    def _rows(self, prepared: Prepared) -> Iterator[tuple[tuple, tuple]]:
        """Yield each sentence's key and row, as in `KerasSearch`."""
        split, (sentences, images, prefixes) = prepared.split, prepared.rows
        for number, tokens in enumerate(sentences):
            prefix = prefixes[number] if prefixes else []
            direction = split.directions[split.text_of[number]]
            key = direction, self._engine.length(len(tokens)), bool(prefix)
            yield key, (tokens, None if images is None else images[number], prefix)

    def low_score(self, direction: Direction) -> float | None:
        """Return the score below which a direction's translations are doubtful; `None` if it is unknown."""
        return self._low_scores.get(direction_key(*direction))

    def doubtful(self, prepared: Prepared, found: list[list[Hypothesis]]) -> list[bool | None]:
        """Return whether the best translation of a text's sentences has a low score; `None` if unknown.

        Args:
            prepared: the texts.
            found: the translations of each sentence.
        """
        low = [self.low_score(direction) for direction in prepared.split.directions]
        doubtful = [None if score is None else False for score in low]
        for text, best in zip(prepared.split.text_of, found, strict=True):
            if low[text] is not None and best[0].score < low[text]:
                doubtful[text] = True
        return doubtful

    async def in_thread(self, function: Callable, *args, size: int):
        """Return `function(*args)`, which reads or checks what a client sent.

        Large inputs are read in a thread, one call at a time, so that they do not delay small ones.

        Args:
            size: int. Number of bytes or characters that the function reads.
        """
        if size <= SMALL:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._checks, function, *args)

    def keras_translator(self) -> "Translator | None":
        """Return Keras's translator, for attention. The first call starts to load it; until then, `None`.

        Raises:
            Exception: loading failed; the next call tries again.
        """
        if self.translator.runs_on_keras:
            return self.translator
        if self._loading is None:
            self._loading = asyncio.create_task(self.batcher.run(lambda: self._engine.keras.translator))
        if not self._loading.done():
            return None
        loading = self._loading
        if loading.cancelled() or loading.exception():
            self._loading = None
        return loading.result()

    def _search(self, key: tuple, rows: list) -> list[list[Hypothesis]]:
        """Translate a batch; called in a model's thread.

        Raises:
            RuntimeError: the model's scores are not finite.
        """
        try:
            return self._engine.search(key, rows)
        except UserError as error:  # the requests were valid: it is not the client's error
            raise RuntimeError(str(error)) from error

    async def _warm_up(self):
        """Translate sentences of the usual lengths, so that their searches are compiled."""
        batches = self._engine.usual()

        async def compile_some():
            for key, batch in batches:
                await self.batcher.run(self._search, key, batch, rows=0, slow=False)

        try:
            await asyncio.gather(*(compile_some() for _ in range(self.batcher.threads)))
        except Exception:
            log.exception("the model cannot translate")
            self.readiness = BROKEN
        else:
            log.info("%s is ready: %s", self.name, self.engine)
            self.readiness = ""

    async def _unload_when_idle(self, seconds: float):
        while True:
            await asyncio.sleep(min(seconds, LOOK_SECONDS))
            await asyncio.to_thread(self.translator.unload_if_idle, seconds)
