"""Kernels of our own for NVIDIA GPUs, for what XLA does in too many passes over the memory.

They are written in Triton (`tools/kernels`); what is kept here is Triton's intermediate
representation, which the Triton inside of XLA compiles with the rest of a step. So they need
neither a compiler nor Triton where they run, and work on TensorFlow as on JAX.
"""

from keras_bert.kernels.attention import attend
from keras_bert.kernels.gelu import add_and_gelu
from keras_bert.kernels.residual_norm import add_and_normalize
from keras_bert.kernels.use import chosen, in_use, ready, scope

__all__ = ["add_and_gelu", "add_and_normalize", "attend", "chosen", "in_use", "ready", "scope"]
