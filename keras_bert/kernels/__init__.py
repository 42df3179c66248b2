"""Fused kernels for NVIDIA GPUs, for operations in which XLA makes too many passes over memory.

They are written in Triton (`tools/kernels`); this folder has Triton's intermediate representation,
which XLA's built-in Triton compiles together with the rest of a step. The kernels therefore need
neither Triton nor a compiler installed, and work on TensorFlow and on JAX.
"""

from keras_bert.kernels.fused_attention import attend
from keras_bert.kernels.gelu import add_and_gelu
from keras_bert.kernels.residual_norm import add_and_normalize
from keras_bert.kernels.use import chosen, in_use, ready, scope

__all__ = ["add_and_gelu", "add_and_normalize", "attend", "chosen", "in_use", "ready", "scope"]
