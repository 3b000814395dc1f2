"""Decoding: one beam search for every model of the zoo.

The search uses a model through three methods, the decoding contract:

- `encode(inputs) → memory`: nested dict of tensors, computed once; the first axis is the sentences.
- `start(memory, beam_size, max_length) → state`: `{"reorder": …, "keep": …}`. Tensors under `"reorder"`
  have first axes (sentences, beams) and are reordered with the hypotheses; those under `"keep"`, whose first
  axis is the sentences, are not. `max_length` is the number of steps that the state has room for. When the
  room runs out, `start` is called again with a greater `max_length`, and the current state is copied to the
  new state's first entries.
- `decode_step(tokens (B, K), step, memory, state) → (logits (B, K, V), state)`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
