"""GloVe against its equation, counts against brute force, and vectors of a toy language."""

import numpy as np
import pytest
import scipy.sparse
from keras import ops

from training.attention_bridge.glove import GloVe, bag_of_vectors, co_occurrences, glove_examples


def test_counts_equal_brute_force(random):
    sentences = [random.integers(0, 7, size).tolist() for size in (0, 1, 2, 5, 30)]
    expected = np.zeros((7, 7))
    for sentence in sentences:
        for i, word in enumerate(sentence):
            for j, context in enumerate(sentence):
                if i != j and abs(i - j) <= 4:
                    expected[word, context] += 1 / abs(i - j)
    np.testing.assert_allclose(co_occurrences(sentences, 7, window=4).toarray(), expected)


def test_loss_is_equation_8(random):
    counts = np.triu(random.poisson(1.0, (6, 6)) * 60.0)
    counts = counts + counts.T
    model = GloVe(6, dim=3)
    w, c, b, d = (random.normal(size=variable.shape).astype("float32") for variable in model.weights)
    model.set_weights([w, c, b, d])
    expected = 0.0
    for i in range(6):
        for j in range(6):
            if counts[i, j] > 0:
                weight = (counts[i, j] / 100) ** 0.75 if counts[i, j] < 100 else 1
                expected += weight * (w[i] @ c[j] + b[i, 0] + d[j, 0] - np.log(counts[i, j])) ** 2
    loss = model.evaluate(**glove_examples(scipy.sparse.csr_array(counts)), batch_size=64, verbose=0)
    assert loss == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(model.vectors(), w + c)


def test_a_step_is_the_authors_program_s():
    """`glove.c`: cost * eta * other vector, divided by the root of a sum of squares that begins at 1."""
    model = GloVe(6, dim=3)
    words, contexts = (ops.convert_to_numpy(table.embeddings) for table in (model.words, model.contexts))
    assert (words != contexts).all()
    expected, squares = words[2].copy(), np.ones(3)
    example = glove_examples(scipy.sparse.csr_array(([20.0], ([2], [4])), (6, 6)))
    for _ in range(3):
        w, c = (ops.convert_to_numpy(table.embeddings) for table in (model.words, model.contexts))
        biases = sum(
            ops.convert_to_numpy(b.embeddings)[n, 0]
            for b, n in ((model.word_biases, 2), (model.context_biases, 4))
        )
        step = 0.05 * 0.2**0.75 * (w[2] @ c[4] + biases - np.log(20)) * c[4]
        expected -= step / np.sqrt(squares)
        squares += step**2
        model.fit(**example, verbose=0)
        np.testing.assert_allclose(model.words.embeddings[2], expected, rtol=1e-4)


def test_words_of_like_contexts_end_near(random):
    """Words 0–4 stand with 10–14, words 5–9 with 15–19."""
    sentences = []
    for _ in range(400):
        kind = random.integers(0, 2) * 5
        words, contexts = random.integers(0, 5, 4) + kind, random.integers(10, 15, 4) + kind
        sentences.append(np.stack([words, contexts], axis=1).ravel())
    model = GloVe(20, dim=8)
    model.fit(**glove_examples(co_occurrences(sentences, 20)), batch_size=50, epochs=30, verbose=0)
    vectors = model.vectors()
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors[:10] @ vectors[:10].T
    within = np.concatenate([cosines[:5, :5], cosines[5:, 5:]])[~np.tile(np.eye(5, dtype=bool), (2, 1))]
    assert within.min() > cosines[:5, 5:].max() + 0.3


def test_bag_of_vectors():
    vectors = np.array([[0, 0], [1, 2], [3, 4]], "float32")

    def tokenizer(texts):
        return [[int(word) for word in text.split()] for text in texts]

    found = bag_of_vectors(vectors, tokenizer)(["1 2", "", "2 2 1"])
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, [[2, 3], [0, 0], [7 / 3, 10 / 3]], rtol=1e-6)
    assert bag_of_vectors(vectors, tokenizer)([]).shape == (0, 2)
