"""Serves models over TensorFlow Serving's REST API; extra `serve`."""

from keras_bert.server.app import create_app
from keras_bert.server.running import serve

__all__ = ["create_app", "serve"]
