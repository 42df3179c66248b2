"""Why a task answered so, and what it learnt."""

from keras_bert.explain.attention_maps import AttentionMaps, attention
from keras_bert.explain.attribution import Attribution, Words, attributions

__all__ = ["Attribution", "AttentionMaps", "Words", "attention", "attributions"]
