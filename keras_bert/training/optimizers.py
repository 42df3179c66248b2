"""AdamW and LAMB, the optimizers of BERT, and Muon."""

import logging
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_above_zero, check_count, check_number

logger = logging.getLogger("keras_bert")


class _Scalars(NamedTuple):
    """Values shared by all variables in one update, as float32 scalars.

    Created once: a graph with separate constants for each variable takes seconds longer to trace.
    """

    rate: Any
    correction_1: Any
    correction_2: Any
    beta_1: Any
    rest_1: Any
    beta_2: Any
    rest_2: Any
    epsilon: Any
    decay: Any


class Optimizer(keras.optimizers.Optimizer):
    """Base of optimizers with two moments, decoupled decay and an update that is a pure function.

    `updated` and `clipped` map tensors to tensors, so that a train step can run them inside a
    function compiled with XLA, identically on every replica. Keras's own `apply` computes the same
    numbers on any backend. Arithmetic and slots are float32 whatever the type of the variables: a
    bfloat16 moment would lose what (1 - beta_2) adds to it.

    Weight decay applies only to variables with two or more axes. Every variable of BERT with a
    single axis is a bias or a LayerNorm's gamma or beta, and no other is. The rule depends on the
    variable, not on its name, which differs between implementations. Embedding tables are decayed,
    as in google-research/bert. `exclude_from_weight_decay` excludes more.

    Args:
        learning_rate: a float, or a schedule of the number of updates.
        weight_decay: decay per update, multiplied by the rate.
        beta_1: decay rate of the first moment.
        beta_2: decay rate of the second moment.
        epsilon: added to the root of the second moment.
        bias_correction: whether to divide the moments by 1 - beta^t (Kingma and Ba 2015).
        global_clipnorm: gradients are scaled down to this norm over all variables; None for
            `clipnorm` (each variable's own norm), `clipvalue`, or no clipping.
        rate_scales: factors on the rate by variable path, 1 by default; see
            `layerwise_rate_scales`.
        **kwargs: other arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: if a number is out of range.
    """

    def __init__(
        self,
        learning_rate=5e-5,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = True,
        global_clipnorm: float | None = 1.0,
        rate_scales: dict[str, float] | None = None,
        **kwargs,
    ):
        for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0 < beta < 1:
                raise ValueError(f"{name}={beta}: expected 0 < {name} < 1")
        not_negative = {"weight_decay": weight_decay, "epsilon": epsilon}
        not_negative |= {f"rate_scales[{path!r}]": s for path, s in (rate_scales or {}).items()}
        for name, value in not_negative.items():
            check_number(name, value)
        limits = {"global_clipnorm": global_clipnorm}
        limits |= {name: kwargs.get(name) for name in ("clipnorm", "clipvalue")}
        for name, value in limits.items():
            check_above_zero(name, 1 if value is None else value)
        # Keras would apply its own decay before the update, so it is passed none.
        super().__init__(
            learning_rate, weight_decay=None, global_clipnorm=global_clipnorm, **kwargs
        )
        self.decay = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.rate_scales = dict(rate_scales or {})

    # === Variables ===

    def build(self, variables) -> None:
        """Creates the slots, decays and rate factors of variables, as `keras.optimizers.Optimizer`.

        Raises:
            ValueError: if `rate_scales` names a path that no variable has.
        """
        if self.built:
            return
        variables = list(variables)
        unknown = sorted(set(self.rate_scales) - {variable.path for variable in variables})
        if unknown:
            raise ValueError(
                f"rate_scales names {', '.join(unknown)}, which no trainable variable has; "
                f"expected paths such as {', '.join(v.path for v in variables[:3])}"
            )
        super().build(variables)
        slots = [[self._slot(v, name) for name in ("momentum", "velocity")] for v in variables]
        self._momentums = [momentum for momentum, _ in slots]
        self._velocities = [velocity for _, velocity in slots]
        self._decays = [self._decay_fits(variable) for variable in variables]
        self._scales = [float(self.rate_scales.get(variable.path, 1.0)) for variable in variables]
        if self.decay:
            logger.debug("no weight decay on: %s", ", ".join(self.undecayed(variables)) or "none")

    def _slot(self, variable, name):
        return self.add_variable(
            variable.shape,
            dtype="float32",
            layout=getattr(variable, "_layout", None),  # JAX shards slots like their variables
            name=f"{variable.path.replace('/', '_')}_{name}",
        )

    def _decay_fits(self, variable) -> bool:
        # There is no public access to the arguments of `exclude_from_weight_decay`.
        return len(variable.shape) > 1 and self._use_weight_decay(variable)

    def exclude_from_weight_decay(self, var_list=None, var_names=None) -> None:
        """Excludes more variables from weight decay, as `keras.optimizers.Optimizer` does.

        Raises:
            ValueError: if the optimizer is built; Keras ignores a late call.
        """
        if self.built:
            raise ValueError("exclude_from_weight_decay: expected a call before build")
        super().exclude_from_weight_decay(var_list, var_names)

    def undecayed(self, variables) -> list[str]:
        """Lists the paths of the variables without weight decay."""
        return [variable.path for variable in variables if not self._decay_fits(variable)]

    def slot_variables(self) -> list[list[keras.Variable]]:
        """The slots [momentum, velocity] of each variable, in the order of `build`."""
        return [list(pair) for pair in zip(self._momentums, self._velocities, strict=True)]

    def other_variables(self) -> list[keras.Variable]:
        """Variables that are not slots: the number of updates, and a settable rate."""
        slots = {id(variable) for pair in self.slot_variables() for variable in pair}
        return [variable for variable in self.variables if id(variable) not in slots]

    @property
    def schedule(self):
        """The `LearningRateSchedule`, or None for a fixed rate."""
        rate = self._learning_rate
        return rate if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) else None

    @property
    def trained_variables(self) -> list[keras.Variable]:
        """The variables passed to `build`; before it, none."""
        return list(self._trainable_variables)

    # === Pure functions ===

    def clipped(self, gradients) -> tuple[list, object]:
        """Clips gradients by the configured limit; see `clipped` of this module."""
        return clipped(self, gradients)

    def updated(self, gradients, values, slots, step, learning_rate) -> tuple[list, list]:
        """Values and slots after one update.

        Args:
            gradients: one tensor per variable in the order of `build`, clipped already.
            values: the variables' values.
            slots: their slots, a list of [momentum, velocity].
            step: number of updates made before this one, integer scalar.
            learning_rate: the rate, scalar.

        Returns:
            (new values, each of its old type; new slots, float32, as lists of two).
        """
        shared = self._scalars(step, learning_rate)
        rates = {scale: shared.rate * scale for scale in set(self._scales)}
        new = [None] * len(values)
        for indices in self._groups(values):
            decays, scale = self._decays[indices[0]], self._scales[indices[0]]
            columns = [gradients, values, *zip(*slots, strict=True)]
            joined = [_joined([column[i] for i in indices]) for column in columns]
            value, new_slots = self._updated(
                indices[0],
                joined[0],
                joined[1],
                joined[2:],
                shared.decay if decays else None,
                rates[scale],
                shared,
            )
            parts = [_parted(v, [values[i] for i in indices]) for v in (value, *new_slots)]
            for i, value, *pair in zip(indices, *parts, strict=True):
                new[i] = value, pair
        return [value for value, _ in new], [pair for _, pair in new]

    def _groups(self, values) -> list[list[int]]:
        """Indices of the variables that are updated together, as one.

        Vectors have no decay and are updated elementwise by every optimizer: concatenated, they
        take one GPU operation instead of a hundred, each of which costs more to start than to run.
        """
        groups: dict[Any, list[int]] = {}
        for i, (value, scale) in enumerate(zip(values, self._scales, strict=True)):
            vector = len(value.shape) == 1
            groups.setdefault((scale, str(value.dtype)) if vector else i, []).append(i)
        return list(groups.values())

    def _scalars(self, step, rate) -> "_Scalars":
        t = ops.cast(step, "float32") + 1
        corrections = [
            _one_minus_power(beta, t) if self.bias_correction else None
            for beta in (self.beta_1, self.beta_2)
        ]
        numbers = (self.beta_1, 1 - self.beta_1, self.beta_2, 1 - self.beta_2)
        numbers += (self.epsilon, self.decay)
        constants = [ops.convert_to_tensor(number, "float32") for number in numbers]
        return _Scalars(ops.cast(rate, "float32"), *corrections, *constants)

    def _updated(self, index, gradient, value, slots, decay, rate, shared):
        """One update of a variable, or of several joined into one: (new value, new slots).

        `index` is the variable's, or that of the first; `gradient` is clipped, `decay` as
        `_change`.
        """
        gradient, old, momentum, velocity = (
            ops.cast(tensor, "float32") for tensor in (gradient, value, *slots)
        )
        momentum = shared.beta_1 * momentum + shared.rest_1 * gradient
        velocity = shared.beta_2 * velocity + shared.rest_2 * ops.square(gradient)
        m, v = momentum, velocity
        if self.bias_correction:
            m = m / shared.correction_1
            v = v / shared.correction_2
        change = self._change(m / (ops.sqrt(v) + shared.epsilon), old, decay)
        return ops.cast(old - rate * change, value.dtype), [momentum, velocity]

    def _change(self, direction, value, decay):
        """The change to subtract, before multiplication by the rate, all float32.

        `direction` is m / (sqrt(v) + epsilon); `decay` a scalar, or None for a variable without.
        """
        return direction if decay is None else direction + decay * value

    # === Keras's way ===

    def _clip_gradients(self, grads):
        # Keras's own clipping squares the rows of a sparse gradient before it adds them up, and
        # fails where bfloat16 and float32 variables meet.
        return self.clipped([_dense(grad) for grad in grads])[0]

    def update_step(self, gradient, variable, learning_rate) -> None:
        i = self._get_variable_index(variable)
        slots = self._momentums[i], self._velocities[i]
        shared = self._scalars(self.iterations, learning_rate)
        value, new_slots = self._updated(
            i,
            gradient,
            variable,
            slots,
            shared.decay if self._decays[i] else None,
            shared.rate * self._scales[i],
            shared,
        )
        self.assign(variable, value)
        for slot, new in zip(slots, new_slots, strict=True):
            self.assign(slot, new)

    def get_config(self) -> dict:
        names = ("beta_1", "beta_2", "epsilon", "bias_correction")
        own = {name: getattr(self, name) for name in names} | {"weight_decay": self.decay}
        return super().get_config() | own | {"rate_scales": dict(self.rate_scales)}


def inner_optimizer(optimizer):
    """The optimizer inside a loss-scaling one; otherwise the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def clipped(optimizer: keras.optimizers.Optimizer, gradients) -> tuple[list, object]:
    """Clips gradients by the limit of any Keras optimizer, if it has one.

    Returns (float32 gradients, their global norm before clipping). Clipping is that of
    `tf.clip_by_global_norm`: g * c / max(norm, c). If the norm is not finite, no clipped gradient
    is finite: an overflow must not look like a zero.
    """
    gradients = [ops.cast(gradient, "float32") for gradient in gradients]
    parts = gradients
    if not optimizer.clipnorm:  # as in `Optimizer._groups`
        vectors = [gradient for gradient in gradients if len(gradient.shape) == 1]
        parts = [gradient for gradient in gradients if len(gradient.shape) != 1]
        parts += [ops.concatenate(vectors)] if vectors else []
    squares = [ops.sum(ops.square(part)) for part in parts]
    norm = ops.sqrt(ops.sum(ops.stack(squares)))
    sound = ops.where(ops.isfinite(norm), 1.0, math.nan)
    if limit := optimizer.global_clipnorm:
        scale = sound * limit / ops.maximum(norm, limit)
        gradients = [gradient * scale for gradient in gradients]
    elif limit := optimizer.clipnorm:
        scales = [sound * limit / ops.maximum(ops.sqrt(s), limit) for s in squares]
        gradients = [g * scale for g, scale in zip(gradients, scales, strict=True)]
    elif limit := optimizer.clipvalue:
        gradients = [sound * ops.clip(gradient, -limit, limit) for gradient in gradients]
    return gradients, norm


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(Optimizer):
    """Adam (Kingma and Ba 2015, algorithm 1) with decoupled decay (Loshchilov and Hutter 2019).

        m = beta_1 * m + (1 - beta_1) * g,  v = beta_2 * v + (1 - beta_2) * g^2
        p = p - rate * (m' / (sqrt(v') + epsilon) + weight_decay * p)

    where m' = m / (1 - beta_1^t) and v' = v / (1 - beta_2^t) at update t = 1, 2, ...; without
    `bias_correction` m' = m and v' = v, as in google-research/bert `optimization.py`,
    AdamWeightDecayOptimizer. The moments start at zero, and v grows more slowly than m, so the
    original's first updates are several times too large. That is a known cause of fine-tuning
    runs that fail on small tasks (Mosbach et al. 2021, "On the Stability of Fine-tuning BERT"),
    so the correction is on by default; False gives the original's numbers.

    For arguments and weight decay see `Optimizer`.
    """


@keras.saving.register_keras_serializable(package="keras_bert")
class Lamb(Optimizer):
    """LAMB for large batches (You et al. 2020, arXiv 1904.00962, algorithm 2).

        u = m' / (sqrt(v') + epsilon) + weight_decay * p
        p = p - rate * |p| / |u| * u

    with the moments of `AdamW`. The ratio of norms is taken for each variable, with phi(x) = x, and
    is 1 where a norm is 0. Variables without decay have neither the decay nor the ratio, as in the
    authors' code, tensorflow/addons `lamb.py`. `keras.optimizers.Lamb` differs: it applies decay
    outside of the ratio and also uses the ratio for biases and LayerNorm.

    For arguments and weight decay see `Optimizer`.
    """

    def _change(self, direction, value, decay):
        change = super()._change(direction, value, decay)
        if decay is None:
            return change
        ours, theirs = (ops.sqrt(ops.sum(ops.square(x))) for x in (value, change))
        both = ops.logical_and(ours > 0, theirs > 0)
        return change * ops.where(both, ours / ops.where(both, theirs, 1.0), 1.0)


@keras.saving.register_keras_serializable(package="keras_bert")
class Muon(Optimizer):
    """Orthogonalized momentum for the matrices inside the network (Jordan et al. 2024, "Muon").

        m = momentum * m + g,  u = NewtonSchulz(g + momentum * m)
        p = p - rate * (rms * sqrt(max(rows, columns)) * u + weight_decay * p)

    The iteration makes all singular values of an update about equal. The factor gives its elements
    the size of AdamW's, so that AdamW's rate and decay fit (Liu et al. 2025, arXiv 2502.16982,
    section 2.2). All other variables are updated as by `AdamW`, at the same rate: vectors,
    embeddings and heads.

    `keras.optimizers.Muon` has the same updates of matrices. It makes them one by one, and outside
    of the compiled step; here all matrices of one shape are a single batch.

    For other arguments and weight decay see `Optimizer`.

    Args:
        learning_rate: as `Optimizer`.
        weight_decay: as `Optimizer`.
        momentum: decay rate of the momentum of matrices.
        newton_schulz_steps: number of Newton-Schulz iterations.
        rms: root mean square of an update, as a fraction of the rate.
        exclude: patterns, searched in the paths of variables, of matrices to leave to AdamW.
        **kwargs: as `Optimizer`.

    Attributes:
        orthogonal: after `build`, whether each variable is such a matrix.

    Raises:
        ValueError: if a number is out of range.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        weight_decay: float = 0.01,
        momentum: float = 0.95,
        newton_schulz_steps: int = 5,
        rms: float = 0.2,
        exclude: Sequence[str] = ("embeddings", "head"),
        **kwargs,
    ):
        check_number("momentum", momentum, below=1)
        check_count("newton_schulz_steps", newton_schulz_steps)
        check_above_zero("rms", rms)
        super().__init__(learning_rate, weight_decay, **kwargs)
        self.momentum, self.rms = momentum, rms
        self.newton_schulz_steps = newton_schulz_steps
        self.exclude = tuple(exclude)

    def build(self, variables) -> None:
        """As `Optimizer.build`."""
        if self.built:
            return
        variables = list(variables)
        self.orthogonal = [
            len(v.shape) == 2 and not any(re.search(pattern, v.path) for pattern in self.exclude)
            for v in variables
        ]
        super().build(variables)

    def _groups(self, values):
        groups: dict[Any, list[int]] = {}
        others = []
        for group in super()._groups(values):
            i = group[0]
            if self.orthogonal[i]:
                value = values[i]
                key = (tuple(value.shape), str(value.dtype), self._decays[i], self._scales[i])
                groups.setdefault(key, []).append(i)
            else:
                others.append(group)
        return [*others, *groups.values()]

    def _updated(self, index, gradient, value, slots, decay, rate, shared):
        if not self.orthogonal[index]:
            return super()._updated(index, gradient, value, slots, decay, rate, shared)
        gradient, old, momentum, velocity = (
            ops.cast(tensor, "float32") for tensor in (gradient, value, *slots)
        )
        momentum = self.momentum * momentum + gradient
        direction = gradient + self.momentum * momentum
        change = orthogonalized(direction, self.newton_schulz_steps)
        change = change * (self.rms * math.sqrt(max(value.shape[-2:])))
        change = self._change(change, old, decay)
        return ops.cast(old - rate * change, value.dtype), [momentum, velocity]

    def get_config(self) -> dict:
        return super().get_config() | {
            "momentum": self.momentum,
            "newton_schulz_steps": self.newton_schulz_steps,
            "rms": self.rms,
            "exclude": list(self.exclude),
        }


def orthogonalized(x, steps: int = 5):
    """Matrices [..., rows, columns] with the same singular vectors, and singular values near 1.

    Newton-Schulz iteration with the coefficients of Jordan et al. 2024, whose singular values end
    between about 0.7 and 1.2; zeros stay zeros.
    """
    flat = x.shape[-2] > x.shape[-1]
    axes = (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2)
    x = ops.transpose(x, axes) if flat else x
    x = x / (ops.sqrt(ops.sum(ops.square(x), axis=(-2, -1), keepdims=True)) + 1e-7)
    for _ in range(steps):
        gram = ops.matmul(x, ops.transpose(x, axes))
        x = 3.4445 * x + ops.matmul(-4.7750 * gram + 2.0315 * ops.matmul(gram, gram), x)
    return ops.transpose(x, axes) if flat else x


def _joined(variables: list):
    """Vectors concatenated, or matrices of one shape stacked."""
    if len(variables) == 1:
        return variables[0]
    return ops.concatenate(variables) if len(variables[0].shape) == 1 else ops.stack(variables)


def _parted(joined, like: list) -> list:
    """Splits the result of `_joined` into variables like these."""
    if len(like) == 1:
        return [joined]
    if len(like[0].shape) > 1:
        return [joined[i] for i in range(len(like))]
    ends = np.cumsum([vector.shape[0] for vector in like])[:-1].tolist()
    return ops.split(joined, ends)


def _dense(gradient):
    """A gradient as one tensor; on TensorFlow, that of a gather has one row per use."""
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        gradient = tf.convert_to_tensor(gradient)
    return gradient


def _one_minus_power(beta: float, t):
    """1 - beta^t to full float32 precision, even if beta^t is near 1."""
    return -ops.expm1(t * math.log(beta))
