"""The loops of `RecurrentEncoder` and `RecurrentDecoder` over whole sentences, with their gradients.

Differentiated automatically, a loop adds a matrix of every weight's size at each token. Here it keeps only
the gradients of the gates; one product over all tokens then gives each weight's.
"""

import itertools

from keras import ops

from kzoo.layers.multi_head_attention import masked_softmax


def read_sentence(gates, recurrent_kernel, mask):
    """Return an LSTM's h at all tokens, and then its last c: `(S + 1, B, units)`.

    Args:
        gates: `(S, B, 4 units)`. What the tokens add to its gates, with the bias.
        recurrent_kernel: `(units, 4 units)`.
        mask: bool `(S, B)`. At `False`, the LSTM keeps its state.
    """

    @ops.custom_gradient
    def loop(gates, recurrent_kernel, real):
        first = {"gates": ops.zeros_like(gates[0])}
        first["h"] = first["c"] = first["gates"][:, : gates.shape[-1] // 4]

        def read_token(state, now):
            added, real = now
            h, c, gates = _lstm(added + ops.matmul(state["h"], recurrent_kernel), state["c"])
            h, c = (ops.where(real > 0, *pair) for pair in ((h, state["h"]), (c, state["c"])))
            return {"h": h, "c": c, "gates": gates}

        last, at = _scan(read_token, first, [gates, real])

        def gradients(*arguments, upstream=None):
            upstream = arguments[0] if upstream is None else upstream  # Keras passes it by name on torch
            derivatives = _lstm_derivatives(at["gates"], at["c"], _before(at["c"], first["c"])) * real
            back = ops.transpose(recurrent_kernel)

            def read_token(state, now):
                upstream, derivatives, real = now
                d_h, padding = upstream + state["h"], 1 - real
                gates, d_c = _lstm_gradients(d_h, state["c"], derivatives)
                h = ops.matmul(gates, back) + padding * d_h
                return {"h": h, "c": d_c + padding * state["c"], "gates": gates}

            _, d = _scan(
                read_token, {**first, "c": upstream[-1]}, [upstream[:-1], derivatives, real], reverse=True
            )
            return d["gates"], _product(_before(at["h"], first["h"]), d["gates"]), ops.zeros_like(real)

        # One tensor, because torch's function with its own gradient returns only one.
        return ops.concatenate([at["h"], last["c"][None]]), gradients

    return loop(gates, recurrent_kernel, ops.cast(mask, gates.dtype)[..., None])


def read_tokens(gates, prepared: dict, initial, kernels, recurrent_kernels, biases, combine, kept=()):
    """Return the attentional vectors and α at all tokens: `(T, B, units[-1] + N)`.

    Args:
        gates: `(T, B, 4 units[0])`. What the tokens add to the first LSTM's gates, with its bias.
        prepared: keys, values and mask, as from `RecurrentDecoder.prepare`.
        initial: pairs `(h, c)`, one per LSTM.
        kernels, recurrent_kernels: of each LSTM, `(D, 4 units)` and `(units, 4 units)`; in the first kernel,
            only the rows of what is fed back.
        biases: of each LSTM but the first, `(4 units,)`.
        combine: W_c, `(D + units[-1], units[-1])`, with D the values' width.
        kept: dropout factors `(T, B, units)`, in the order of `RecurrentDecoder.step`; they get no gradient.
    """
    depth, kept_count = len(initial), len(kept)

    @ops.custom_gradient
    def loop(gates, keys, values, real, combine, *others):
        ends = itertools.accumulate([depth] * 4 + [kept_count, depth - 1], initial=0)
        groups = (others[first:end] for first, end in itertools.pairwise(ends))
        h, c, kernels, recurrent_kernels, kept, biases = groups
        mask = real > 0
        nothing = ops.zeros_like(gates[0, :, :1])  # (B, 1)
        first = {
            "a": ops.repeat(nothing, combine.shape[-1], axis=-1),
            "h": list(h),
            "c": list(c),
            "gates": [ops.repeat(nothing, kernel.shape[-1], axis=-1) for kernel in kernels],
            "scores": ops.zeros_like(keys[:, :, 0]),
        }

        def read_token(state, now):
            added, *factors = now
            below, states = state["a"], []
            for n in range(depth):
                z = ops.matmul(below, kernels[n]) + ops.matmul(state["h"][n], recurrent_kernels[n])
                states.append(_lstm(z + (biases[n - 1] if n else added), state["c"][n]))
                below = states[-1][0]
                if factors and n < depth - 1:
                    below = below * factors[n]
            alpha = masked_softmax(ops.matmul(below[:, None], ops.swapaxes(keys, 1, 2)), mask[:, None])
            context = ops.matmul(alpha, values)[:, 0]
            a = ops.tanh(ops.matmul(ops.concatenate([context, below], axis=-1), combine))
            a = a * factors[-1] if len(factors) == depth else a
            h, c, gates = (list(part) for part in zip(*states, strict=True))
            return {"a": a, "h": h, "c": c, "gates": gates, "scores": alpha[:, 0]}

        _, at = _scan(read_token, first, [gates, *kept])

        def gradients(*arguments, upstream=None):
            upstream = arguments[0] if upstream is None else upstream
            return _gradients(
                upstream, at, first, keys, values, mask, combine, kernels, recurrent_kernels, kept
            )

        return ops.concatenate([at["a"], at["scores"]], axis=-1), gradients

    h, c = zip(*initial, strict=True)
    keys, values, real = prepared["keys"], prepared["values"], ops.cast(prepared["mask"], gates.dtype)
    others = *h, *c, *kernels, *recurrent_kernels, *kept, *biases
    return loop(gates, keys, values, real, combine, *others)  # all arrays: on JAX it takes none from outside


def _gradients(upstream, at, first, keys, values, mask, combine, kernels, recurrent_kernels, kept):
    """Return the gradients of the arguments of `loop`, from the last token to the first."""
    depth, width = len(kernels), combine.shape[-1]
    between, fed_back = kept[: depth - 1], kept[depth - 1 :]
    # What an attentional vector's gradient is multiplied by before W_c: tanh' and the dropout.
    factors = fed_back[0] if fed_back else ops.ones_like(at["a"])
    derivative = factors - ops.square(at["a"]) / ops.where(factors > 0, factors, 1)
    derivatives = [
        _lstm_derivatives(gates, c, _before(c, c_0))
        for gates, c, c_0 in zip(at["gates"], at["c"], first["c"], strict=True)
    ]
    back = [[ops.transpose(kernel) for kernel in part] for part in (kernels, recurrent_kernels)]
    combine_back, values_back = ops.transpose(combine), ops.swapaxes(values, 1, 2)

    def read_token(state, now):
        upstream_a, derivative, upstream_scores, alpha, *rest = now
        derivatives, factors = rest[:depth], rest[depth:]
        combined = (upstream_a + state["a"]) * derivative
        d_inputs = ops.matmul(combined, combine_back)
        d_context, d_below = d_inputs[:, :-width], d_inputs[:, -width:]
        d_alpha = upstream_scores + ops.matmul(d_context[:, None], values_back)[:, 0]
        d_scores = alpha * (d_alpha - ops.sum(alpha * d_alpha, axis=-1, keepdims=True))
        d_scores = ops.where(mask, d_scores, ops.zeros_like(d_scores))
        d_below = d_below + ops.matmul(d_scores[:, None], keys)[:, 0]
        h, c, gates = [None] * depth, [None] * depth, [None] * depth
        for n in reversed(range(depth)):
            gates[n], c[n] = _lstm_gradients(d_below + state["h"][n], state["c"][n], derivatives[n])
            h[n] = ops.matmul(gates[n], back[1][n])
            d_below = ops.matmul(gates[n], back[0][n])
            if factors and n:
                d_below = d_below * factors[n - 1]
        parts = {"combined": combined, "context": d_context, "scores": d_scores}
        return {"a": d_below, "h": h, "c": c, "gates": gates, **parts}

    zeros = [ops.zeros_like(h) for h in first["h"]]
    none = {**first, "h": zeros, "c": zeros, "combined": first["a"], "context": ops.zeros_like(values[:, 0])}
    each = [upstream[..., :width], derivative, upstream[..., width:], at["scores"], *derivatives, *between]
    last, d = _scan(read_token, none, each, reverse=True)

    below = [_before(at["a"], first["a"]), *at["h"][:-1]]
    if between:
        below[1:] = [h * factors for h, factors in zip(below[1:], between, strict=True)]
    alpha, d_scores, d_context, h = (
        ops.swapaxes(x, 0, 1) for x in (at["scores"], d["scores"], d["context"], at["h"][-1])
    )
    context = ops.swapaxes(ops.matmul(alpha, values), 0, 1)  # (T, B, D)
    return (
        d["gates"][0],
        ops.matmul(ops.swapaxes(d_scores, 1, 2), h),
        ops.matmul(ops.swapaxes(alpha, 1, 2), d_context),
        ops.zeros_like(mask, upstream.dtype),
        ops.concatenate([_product(x, d["combined"]) for x in (context, at["h"][-1])]),
        *last["h"],
        *last["c"],
        *map(_product, below, d["gates"]),
        *(
            _product(_before(h, h_0), gates)
            for h, h_0, gates in zip(at["h"], first["h"], d["gates"], strict=True)
        ),
        *map(ops.zeros_like, kept),
        *(_product(ops.ones_like(gates[..., :1]), gates)[0] for gates in d["gates"][1:]),
    )


def value_of(variable):
    """Return a variable's value; on TensorFlow, a function with its own gradient takes no variables."""
    return ops.reshape(variable, variable.shape)


def _lstm(z, c):
    """Return h and c `(B, units)`, and the gates i, f, g and o `(B, 4 units)`; z: before activation."""
    i, f, g, o = ops.split(z, 4, axis=-1)
    i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
    c = f * c + i * g
    return o * ops.tanh(c), c, ops.concatenate([i, f, g, o], axis=-1)


def _lstm_derivatives(gates, c, c_before):
    """Return what `_lstm_gradients` multiplies by, at all tokens: `(T, B, 6 units)`."""
    i, f, g, o = ops.split(gates, 4, axis=-1)
    tanh_c = ops.tanh(c)
    by_gate = [g * i * (1 - i), c_before * f * (1 - f), i * (1 - ops.square(g)), tanh_c * o * (1 - o)]
    return ops.concatenate([*by_gate, o * (1 - ops.square(tanh_c)), f], axis=-1)


def _lstm_gradients(d_h, d_c, derivatives):
    """Return the gradients of z and of the previous c."""
    units = d_h.shape[-1]
    d_c = d_c + d_h * derivatives[:, 4 * units : 5 * units]
    d_z = ops.concatenate([d_c, d_c, d_c, d_h], axis=-1) * derivatives[:, : 4 * units]
    return d_z, d_c * derivatives[:, 5 * units :]


def _before(states, first):
    """Return the states `(T, B, units)` before each token."""
    return ops.concatenate([first[None], states[:-1]])


def _product(inputs, gradients):
    """Return a weight's gradient, from its inputs `(T, B, D)` and its outputs' gradients at all tokens."""
    inputs, gradients = (ops.reshape(x, (-1, x.shape[-1])) for x in (inputs, gradients))
    return ops.matmul(ops.transpose(inputs), gradients)


def _scan(read_token, state, inputs: list, reverse: bool = False):
    """Return the last state, and the states at all tokens; `inputs`: of `(T, B, D)`."""
    # One tensor, because Keras's `scan` over several tensors of unknown length fails on TensorFlow, whose
    # scan also collects only outputs of the state's shape.
    ends = list(itertools.accumulate((ops.shape(x)[-1] for x in inputs), initial=0))

    def read(state, now):
        state = read_token(state, [now[:, first:end] for first, end in itertools.pairwise(ends)])
        return state, state

    return ops.scan(read, state, ops.concatenate(inputs, axis=-1), reverse=reverse)
