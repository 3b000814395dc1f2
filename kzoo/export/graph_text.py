"""The tokenizers as parts of a TensorFlow graph, so that a SavedModel takes text and returns text."""

from kzoo.errors import UserError
from kzoo.text import CharacterTokenizer, MarianTokenizer, SubwordTokenizer
from kzoo.text.marian_pieces import SPACE
from kzoo.text.special_tokens import SPECIAL, UNKNOWN

# The characters at which `str.splitlines` ends a line.
LINE_ENDS = "[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+"


def graph_tokenizer(tokenizer):
    """Return a tokenizer that works in the graph, with `tokenize` and `detokenize`.

    Args:
        tokenizer: `SubwordTokenizer`, `MarianTokenizer` or `CharacterTokenizer`.

    Raises:
        UserError: another kind of tokenizer, such as one that runs Moses's rules in Python.
    """
    if type(tokenizer) not in GRAPH_TOKENIZERS:
        raise UserError(
            f"a {type(tokenizer).__name__} cannot be put into a SavedModel: only "
            f"{' and '.join(kind.__name__ for kind in GRAPH_TOKENIZERS)} run in TensorFlow's graph"
        )
    return GRAPH_TOKENIZERS[type(tokenizer)](tokenizer)


def graph_subwords(tokenizer: SubwordTokenizer):
    """Return SentencePiece in the graph."""
    import tensorflow as tf
    import tensorflow_text

    class GraphSubwords(tf.Module):
        def __init__(self):
            super().__init__()
            self.pieces = tensorflow_text.SentencepieceTokenizer(tokenizer.proto)

        def tokenize(self, text):
            """Return the token ids `(B, None)` of texts `(B,)`, ragged."""
            # SentencePiece would otherwise read invalid bytes as pieces of its own, not as U+FFFD.
            text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
            return self.pieces.tokenize(one_line_in_graph(text))

        def detokenize(self, tokens):
            """Return the texts `(B,)` of ragged token ids."""
            return self.pieces.detokenize(tokens)

    return GraphSubwords()


def graph_characters(tokenizer: CharacterTokenizer):
    """Return a table of characters in the graph."""
    import tensorflow as tf

    vocabulary = tokenizer.get_vocabulary()

    class GraphCharacters(tf.Module):
        def __init__(self):
            super().__init__()
            numbers = tf.range(len(vocabulary), dtype=tf.int32)
            pairs = tf.lookup.KeyValueTensorInitializer(vocabulary, numbers)
            self.numbers = tf.lookup.StaticHashTable(pairs, default_value=UNKNOWN)
            self.shown = tf.constant(tokenizer.detokenize([[i] for i in range(len(vocabulary))]))

        def tokenize(self, text):
            """Return the character ids `(B, None)` of texts `(B,)`, ragged."""
            characters = tf.strings.unicode_split(one_line_in_graph(text), "UTF-8")
            return tf.ragged.map_flat_values(self.numbers.lookup, characters)

        def detokenize(self, tokens):
            """Return the texts `(B,)` of ragged character ids."""
            return tf.strings.reduce_join(tf.gather(self.shown, tokens), axis=-1)

    return GraphCharacters()


def graph_marian(tokenizer: MarianTokenizer):
    """Return SentencePiece and the vocabulary of its pieces in the graph."""
    import tensorflow as tf
    import tensorflow_text

    if tokenizer.normalize_punctuation:
        raise UserError("Moses's rules of punctuation run in Python: leave them out of what is exported")
    vocabulary = tokenizer.get_vocabulary()
    default = f">>{tokenizer.language}<<" if tokenizer.language else ""

    class GraphMarian(tf.Module):
        def __init__(self):
            super().__init__()
            self.pieces = tensorflow_text.SentencepieceTokenizer(tokenizer.proto, out_type=tf.string)
            pairs = tf.lookup.KeyValueTensorInitializer(vocabulary, tf.range(len(vocabulary), dtype=tf.int32))
            self.numbers = tf.lookup.StaticHashTable(pairs, default_value=UNKNOWN)
            self.shown = tf.constant([""] * len(SPECIAL) + vocabulary[len(SPECIAL) :])

        def tokenize(self, text):
            """Return the token ids `(B, None)` of texts `(B,)`, ragged."""
            text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
            text = one_line_in_graph(text)
            code = tf.strings.regex_replace(text, "^(>>.*?<<).*$|^.*$", r"\1")
            rest = tf.strings.regex_replace(text, "^>>.*?<<", "")
            blank = tf.equal(tf.strings.strip(text), "")
            code = tf.where((code == "") & ~blank, default, code)
            codes = tf.RaggedTensor.from_row_lengths(
                tf.boolean_mask(code, code != ""), tf.cast(code != "", tf.int64)
            )
            pieces = tf.concat([codes, self.pieces.tokenize(rest)], axis=1)
            return tf.ragged.map_flat_values(self.numbers.lookup, pieces)

        def detokenize(self, tokens):
            """Return the texts `(B,)` of ragged token ids."""
            joined = tf.strings.reduce_join(tf.gather(self.shown, tokens), axis=-1)
            return tf.strings.strip(tf.strings.regex_replace(joined, SPACE, " "))

    return GraphMarian()


def one_line_in_graph(text):
    """Return texts `(B,)` without line ends, as `kzoo.text.sentences.one_line` does."""
    import tensorflow as tf

    without = tf.strings.regex_replace(text, f"^{LINE_ENDS}|{LINE_ENDS}$", "")
    return tf.strings.regex_replace(without, LINE_ENDS, " ")


GRAPH_TOKENIZERS = {
    SubwordTokenizer: graph_subwords,
    MarianTokenizer: graph_marian,
    CharacterTokenizer: graph_characters,
}


def graph_languages(codes: list[str]):
    """Return a table of languages in the graph, whose `numbers` rejects languages that are not in it."""
    import tensorflow as tf

    class GraphLanguages(tf.Module):
        def __init__(self):
            super().__init__()
            pairs = tf.lookup.KeyValueTensorInitializer(codes, tf.range(len(codes), dtype=tf.int32))
            self.table = tf.lookup.StaticHashTable(pairs, default_value=-1)

        def numbers(self, names):
            """Return the numbers `(B,)` of language codes `(B,)`."""
            found = self.table.lookup(names)
            known = f"unknown language; this model knows {', '.join(codes)}"
            with tf.control_dependencies([tf.debugging.assert_non_negative(found, message=known)]):
                return tf.identity(found)

    return GraphLanguages()
