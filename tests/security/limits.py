"""What an attack may take before it ends, in time and memory."""

import contextlib
import resource
import time


@contextlib.contextmanager
def soon_and_small(kilobytes: int):
    """Fails if what runs inside takes 20 seconds of the processor, or so much more memory."""
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - start < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < kilobytes
