"""How fast a run is: rows, tokens and floating-point operations per second."""

import functools
import logging
import math
from collections.abc import Callable
from time import perf_counter

import keras

from keras_bert.arguments import check_above_zero
from keras_bert.training.pace import EverySteps, fresh_counters

logger = logging.getLogger("keras_bert")


class Throughput(keras.callbacks.Callback):
    """Adds the speed of each epoch to its logs; put it before callbacks that write logs.

    Names in the logs:

    - `sequences_per_second`: rows whose weight is not 0, over all devices.
    - `tokens_per_second`: tokens of these rows, padding left out.
    - `padding_share`: share of the computed slots that hold no such token.
    - `step_ms`: time of a step, milliseconds.
    - `model_tflops`: `training_flops` of all computed slots, 10^12 per second over all devices.
    - `mfu`: that as a share of the peak ("model FLOPs utilization", Chowdhery et al. 2022,
      appendix B). Padding counts as work there, as in published tables, whose rows are full.

    The last two are omitted if some weights are frozen, since the formula is for training all of
    them; `mfu` also if the peak is not known.

    The clock starts at the end of the first call of the train function, which compiles it, and
    stops for validation and between epochs. Work of other callbacks between steps is included, and
    so is compilation for batches of another shape. An epoch without a timed step gets no rates.

    Args:
        every_steps: steps between two reports to `log`; each waits for the device.
        peak_flops: peak of one device, floating-point operations per second, from its data sheet.
            None: on GPUs that of `measured_peak_flops`, else there is no `mfu`.
        log: called with a dict of `step` and the rates since the last report, such as `print` or
            `JsonLines(...).write`; None for a line in the log of the package.

    Raises:
        ValueError: if a number is out of range; in `fit`, if the train step does not count.
    """

    def __init__(
        self,
        every_steps: int = 50,
        peak_flops: float | None = None,
        log: Callable[[dict], None] | None = None,
    ):
        super().__init__()
        if peak_flops is not None:
            check_above_zero("peak_flops", peak_flops)
        self._beat = EverySteps(every_steps)
        self.peak_flops = peak_flops
        self._log = log or _log_line

    def on_train_begin(self, logs=None):
        self._counters = fresh_counters(self)
        self._first = self.model.run.done
        self._beat.start(self._first)
        peak = self.peak_flops or measured_peak_flops()
        self._peak = peak and peak * self.model.step.replica_count
        self._all_trained = not self.model.non_trainable_weights
        self._masked = _masked_positions(self.model)
        self._epoch_mark = None  # where the clock started in this epoch

    def on_epoch_begin(self, epoch, logs=None):
        self._end_mark = None
        if self._epoch_mark is not None:
            self._epoch_mark = self._report_mark = self._mark()

    def after_step(self, logs):
        done = self.model.run.done
        due = self._beat.due(done)
        if self._epoch_mark is None:
            if done > self._first:
                self._epoch_mark = self._report_mark = self._mark()
        elif due:
            mark = self._mark()
            self._log({"step": done, **self._rates(self._report_mark, mark)})
            self._report_mark = mark

    def on_test_begin(self, logs=None):
        self._end_mark = self._mark()

    def on_epoch_end(self, epoch, logs=None):
        if self._epoch_mark is not None:
            logs.update(self._rates(self._epoch_mark, self._end_mark or self._mark()))

    def _mark(self):
        counts = self._counters.read()  # waits for the device, so the clock is read after it
        return perf_counter(), counts

    def _rates(self, begin, end) -> dict[str, float]:
        seconds = end[0] - begin[0]
        rows, tokens, slots, steps = (
            end[1][name] - begin[1][name] for name in ("rows", "tokens", "slots", "steps")
        )
        if steps == 0:
            return {}
        rates = {
            "sequences_per_second": rows / seconds,
            "tokens_per_second": tokens / seconds,
            "padding_share": 1 - tokens / slots,
            "step_ms": 1000 * seconds / steps,
        }
        if self._all_trained and rows:
            flops = training_flops(self.model, rows, slots, rows * self._masked) / seconds
            rates["model_tflops"] = flops / 1e12
            if self._peak:
                rates["mfu"] = flops / self._peak
        return rates


def training_flops(model, rows: int, slots: int, masked: int = 0) -> float:
    """Floating-point operations that training a task on some rows takes, forward and backward.

    Reference: Chowdhery et al. 2022 (PaLM), appendix B: 6 for each weight and slot that are
    multiplied, and 12 * L * H * T for a slot in a text of T slots, which is what the attention of L
    blocks of width H takes. Recomputation to save memory is not counted. Weights that are
    multiplied: the kernels of the blocks for each slot; those of pooler and heads once per row;
    those of the masked language model's head, including the word table, for each masked position.
    Embedding look-ups, biases, normalizations and the optimizer are not counted, as in the paper.

    Args:
        model: a task with a `BertBackbone` as its `backbone`, all of which is trained.
        rows: rows.
        slots: token slots of these rows, including padding; T is taken as slots / rows.
        masked: masked positions of these rows, including unused ones.

    Returns:
        The number of operations; a multiplication and an addition are two.
    """
    backbone = model.backbone
    blocks = _kernel_weights(backbone.blocks)
    head = getattr(model, "masked_lm_head", None)
    per_position = 0
    if head is not None:
        table = backbone.vocabulary_size * backbone.hidden_dim
        per_position = table + _kernel_weights([head])
    others = [layer for layer in model.layers if layer not in (backbone, head)]
    per_row = _kernel_weights([backbone.pooler, *others])
    attention = 2 * backbone.num_layers * backbone.hidden_dim * slots / rows
    return 6 * (slots * (blocks + attention) + rows * per_row + masked * per_position)


@functools.cache
def measured_peak_flops() -> float | None:
    """Measures the bfloat16 matrix product of the first GPU, [8192, 8192] by [8192, 8192].

    The first call takes a second or two. The measured peak is below that of data sheets, so
    fractions of it are higher than in tables that use those. Thirty products in a row are long
    enough for the power limit to hold the clock down: on one H200, TensorFlow 2.21, they ran at 650
    to 679 TFLOP/s, in torch at 668, while the first ten after a rest reached 728. None without a
    GPU.
    """
    if keras.config.backend() != "tensorflow":
        return None
    import tensorflow as tf

    if not tf.config.list_logical_devices("GPU"):
        return None
    size, products = 8192, 30

    @tf.function(jit_compile=True, autograph=False)
    def chain(a, b):
        for _ in range(products):
            b = tf.matmul(a, b)
        return tf.reduce_sum(tf.cast(b, tf.float32))

    with tf.device("GPU:0"):
        # Normal numbers, since zeros would use less power; with a stddev that products preserve.
        a, b = (
            tf.cast(tf.random.stateless_normal([size, size], [i, 0]) / size**0.5, tf.bfloat16)
            for i in range(2)
        )
        seconds = []
        for _ in range(6):  # the first compiles
            begin = perf_counter()
            float(chain(a, b))
            seconds.append(perf_counter() - begin)
    return products * 2.0 * size**3 / min(seconds)


def _kernel_weights(layers) -> int:
    """The number of elements in the matrices of layers."""
    weights = [weight for layer in layers for weight in layer.weights]
    return sum(math.prod(weight.shape) for weight in weights if len(weight.shape) > 1)


def _masked_positions(model) -> int:
    """Masked positions of a row that `fit` trains on; 0 for tasks without any."""
    if "mask_positions" not in model.input:
        return 0
    x = model.run.source.one_pass().element_spec[0]
    found = x["mask_positions"].shape[1]
    if found is None:
        logger.warning(
            "the dataset does not say how many mask_positions a row has: model_tflops and mfu "
            "leave out the product with the word table"
        )
    return found or 0


def _log_line(rates: dict) -> None:
    logger.info("%s", ", ".join(f"{name} {value:.5g}" for name, value in rates.items()))
