"""GloVe: subword vectors from co-occurrence counts, and their means as sentence embeddings, a baseline."""

from collections.abc import Callable, Iterable, Sequence

import keras
import numpy as np
import scipy.sparse
from keras import ops

from kzoo.models import Adagrad

X_MAX, ALPHA = 100.0, 0.75  # the paper's


class GloVe(keras.Model):
    """Word vectors with products that approximate the logarithms of co-occurrence counts.

    The loss of one pair of words is f(X_ij) · (w_i · w̃_j + b_i + b̃_j − log X_ij)², with
    f(x) = min(1, (x / 100)^(3/4)); Eq. 8 sums it over the pairs that occur, `fit` over those of a batch.
    The model is compiled as in the authors' program, with AdaGrad at rate 0.05 whose accumulators begin at 1.

    Args:
        vocabulary_size: int, V.
        dim: int. Width of a vector.
        seed: int. Seed of the initial vectors.

    Call arguments:
        inputs: `{"word", "context"}`, int32 `(B,)` each.

    Returns:
        The model's log X, float32 `(B, 1)`.

    Example:

    >>> from training.attention_bridge.glove import bag_of_vectors, co_occurrences, glove_examples
    >>> sentences = open_corpus("scenes").sentences("train", "en")
    >>> tokenizer = SubwordTokenizer(train_subwords(sentences, 500))
    >>> counts = co_occurrences(tokenizer(sentences), tokenizer.vocabulary_size())
    >>> glove = GloVe(tokenizer.vocabulary_size(), dim=64)
    >>> glove.fit(**glove_examples(counts), batch_size=4096, epochs=15)
    >>> embed = bag_of_vectors(glove.vectors(), tokenizer)

    Reference:
        Pennington et al. 2014, "GloVe: Global Vectors for Word Representation", Eq. 8 and 9.
        https://aclanthology.org/D14-1162
    """

    def __init__(self, vocabulary_size: int, dim: int, seed: int = 1):
        super().__init__()

        def table(width: int, name: str) -> keras.layers.Embedding:
            # As in the authors' program.
            initial = keras.initializers.RandomUniform(-0.5 / dim, 0.5 / dim, seed=seed + len(self.layers))
            layer = keras.layers.Embedding(vocabulary_size, width, initial, name=name)
            layer.build()
            return layer

        self.words = table(dim, "words")
        self.contexts = table(dim, "contexts")
        self.word_biases = table(1, "word_biases")
        self.context_biases = table(1, "context_biases")
        # The program accumulates (0.05 g)², where g is the gradient of half this loss:
        # 0.05 g / sqrt(1 + Σ (0.05 g)²) is 2 g / sqrt(1600 + Σ (2 g)²).
        optimizer = Adagrad(1.0, initial_accumulator_value=1600.0)
        self.compile(optimizer, loss=keras.losses.MeanSquaredError(reduction="sum"))
        self.built = True

    def call(self, inputs):
        word, context = inputs["word"], inputs["context"]
        products = ops.sum(self.words(word) * self.contexts(context), axis=-1, keepdims=True)
        return products + self.word_biases(word) + self.context_biases(context)

    def vectors(self) -> np.ndarray:
        """Return w + w̃, float32 `(V, dim)`, as in the paper."""
        both = self.words.embeddings + self.contexts.embeddings
        return ops.convert_to_numpy(both)


def co_occurrences(
    sentences: Iterable[Sequence[int]], vocabulary_size: int, window: int = 10
) -> scipy.sparse.csr_array:
    """Count how often words occur near each other; a pair d words apart counts 1 / d.

    Args:
        sentences: ids of each sentence's words; nothing is counted across sentences.
        vocabulary_size: int, V.
        window: int. Words farther apart do not count.

    Returns:
        X, float64 `(V, V)`, symmetric.
    """
    shape = (vocabulary_size, vocabulary_size)
    ids = [np.asarray(sentence, "int64") for sentence in sentences]
    counts = scipy.sparse.csr_array(shape)
    for distance in range(1, window + 1):
        near = [(s[:-distance], s[distance:]) for s in ids if len(s) > distance]
        if near:
            left, right = (np.concatenate(side) for side in zip(*near, strict=True))
            weights = np.full(len(left), 1 / distance)
            counts = counts + scipy.sparse.coo_array((weights, (left, right)), shape).tocsr()
    return (counts + counts.T).tocsr()


def glove_examples(counts: scipy.sparse.csr_array) -> dict[str, np.ndarray | dict[str, np.ndarray]]:
    """Return the arguments of `GloVe.fit`: `x`, pairs that occur; `y`, log X; `sample_weight`, f(X) (Eq. 9).

    Args:
        counts: X, `(V, V)`.
    """
    pairs = counts.tocoo()
    inputs = {"word": pairs.row.astype("int32"), "context": pairs.col.astype("int32")}
    weights = np.minimum(1, (pairs.data / X_MAX) ** ALPHA)
    # With one axis only, Keras's loss would be a mean over the batch.
    log_counts = np.log(pairs.data).astype("float32")[:, None]
    return {"x": inputs, "y": log_counts, "sample_weight": weights.astype("float32")}


def bag_of_vectors(
    vectors: np.ndarray, tokenizer: Callable[[list[str]], list[list[int]]]
) -> Callable[[list[str]], np.ndarray]:
    """Return a function that embeds sentences as the mean of their words' vectors.

    Args:
        vectors: float `(V, E)`, such as `GloVe.vectors()`.
        tokenizer: function from a list of sentences to their token ids, below V.

    Returns:
        A function from N sentences to float32 `(N, E)`. A sentence without words gives zeros.
    """

    def embed(texts: list[str]) -> np.ndarray:
        ids = [np.asarray(sentence, "int64") for sentence in tokenizer(list(texts))]
        lengths = np.array([len(sentence) for sentence in ids], "int64")
        rows, columns = np.repeat(np.arange(len(ids)), lengths), np.concatenate([np.zeros(0, "int64"), *ids])
        weights = np.repeat(1 / np.maximum(lengths, 1), lengths)
        bags = scipy.sparse.csr_array((weights, (rows, columns)), (len(ids), len(vectors)))
        return (bags @ vectors).astype("float32")

    return embed
