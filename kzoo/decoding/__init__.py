"""From a model to its best sentences: one beam search for every model of the zoo.

The search knows a model by three methods, the decoding contract:

- `encode(inputs) → memory`: nested dict of tensors, first axis the sentences, computed once.
- `start(memory, beam_size, max_length) → state`: `{"reorder": …, "keep": …}`. Tensors under `"reorder"`
  have first axes (sentences, beams) and follow the hypotheses; those under `"keep"`, first axis the
  sentences, stay as they are. `max_length` is the number of steps that the state has room for. Room that
  runs out is made by another call with a greater one, over whose first entries the present state is written.
- `decode_step(tokens (B, K), step, memory, state) → (logits (B, K, V), state)`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "beam_search": ["BeamSearch"],
        "length_penalty": ["GNMT", "Exponent"],
    },
)
