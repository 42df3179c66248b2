"""Data: readers of public formats, and labelled text made for demos."""

from keras_bert.data.tables import Examples, read_table

__all__ = ["Examples", "read_table"]
