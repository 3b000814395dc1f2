"""Decoding: one beam search for every model of the zoo.

The search uses a model through three methods, the decoding contract:

- `encode(inputs) → memory`: nested dict of tensors, computed once; their first axis is the sentences.
- `start(memory, beam_size, max_length) → state`: `{"reorder": …, "keep": …}`. Tensors under `"reorder"`
  have the first axes (sentences, beams) and are reordered with the hypotheses; those under `"keep"` have the
  first axis sentences and are not. The state has room for `max_length` steps. To make more room, the search
  calls `start` again with a greater `max_length` and copies the state into the first entries of the new one.
  The first step of a large batch has one beam; the state is then copied into one of `beam_size` beams.
- `decode_step(tokens (B, K), step, memory, state) → (logits (B, K, V), state)`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
