"""What an attack may take before it ends, in time and memory."""

import contextlib
import resource
import time


@contextlib.contextmanager
def soon_and_small(kilobytes: int):
    """Fails if what runs inside takes 20 seconds, or as much more memory than the process had."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.monotonic() - start < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < kilobytes
