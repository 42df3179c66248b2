"""Serves models over TensorFlow Serving's REST API; extra `serve`."""

try:
    import orjson  # noqa: F401
    import prometheus_client  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"{error.name} is not installed, which a server needs: `pip install 'keras3-bert[serve]'`"
    ) from error

from keras_bert.server.app import create_app
from keras_bert.server.running import serve

__all__ = ["create_app", "serve"]
