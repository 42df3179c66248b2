"""The command `keras-bert`: trains, scores, tries and serves a BERT from files.

Every command is a few calls of the package `keras_bert`. It stands beside the package, not in it,
so that `keras-bert --help` answers without importing TensorFlow.
"""
