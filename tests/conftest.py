"""What every test gets: fixed seeds, a clean Keras, and the larger public data if it is there."""

import gc
import os
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with public data sets that are too large, or not free enough, to lie here."""
    path = Path(os.environ.get("KERAS_BERT_SHARED", ROOT.parent / "shared"))
    if not (path / "data").is_dir():
        pytest.skip(f"no data folder in {path}; set KERAS_BERT_SHARED to where the data lies")
    return path


@pytest.fixture(autouse=True)
def seeded_and_clean() -> Iterator[None]:
    """Seeds before each test; afterwards gives back Keras's global state.

    Keras is not imported for it: tests that do without should not wait for TensorFlow.
    """
    random.seed(0)
    np.random.seed(0)
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(0)
    yield
    keras = sys.modules.get("keras")
    if keras is not None:
        keras.utils.clear_session(free_memory=False)
        keras.config.set_dtype_policy("float32")
        keras.config.set_floatx("float32")


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their markers
def pytest_collection_modifyitems(items) -> None:
    """Marks all but the first parameter of a test with `one_quick` as `thorough`."""
    seen = set()
    for item in items:
        if item.get_closest_marker("one_quick") and not item.get_closest_marker("slow"):
            name = item.nodeid.partition("[")[0]
            if name in seen:
                item.add_marker(pytest.mark.thorough)
            seen.add(name)


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup(item) -> None:
    """Turns TensorFlow's graph optimizer off, but for tests marked `optimized` and slow ones.

    It rewrites each traced graph before its first run, for speed that tiny models do not need: a
    seventh of the time of a test that trains. With it run the tests that compare the network with
    other implementations and exports with verbs, and every process that a test starts. XLA,
    tf.data and tracing are as users have them in all tests.
    """
    if "tensorflow" in sys.modules:
        off = not any(map(item.get_closest_marker, ("optimized", "slow")))
        optimizer = sys.modules["tensorflow"].config.optimizer
        if optimizer.get_experimental_options()["disable_meta_optimizer"] is not off:
            optimizer.set_experimental_options({"disable_meta_optimizer": off})


@pytest.fixture
def eager() -> Iterator[None]:
    """Calls of the train step and of predictions run without a graph: nothing is traced.

    For tests of code outside of the graph (labels, order of batches, callbacks, files), which
    would wait for one trace a model. The preprocessors in tf.data stay graphs.
    """
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Even though the .*run_functions_eagerly")
        yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Leaves what lives at the end of a file out of later collections of garbage.

    TensorFlow, Keras and traced graphs are millions of objects, which each full collection would
    go through again: by the end of a run, that is most of a test's time.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> Path:
    """Folder of a tiny classifier's export; nobody writes to it."""
    from keras_bert import BertClassifier

    folder = tmp_path_factory.mktemp("exported") / "classifier"
    BertClassifier.from_preset(ROOT / "tests" / "golden" / "tiny_one_block").export(folder)
    return folder


def pytest_terminal_summary(terminalreporter) -> None:
    """One line that says how many tests were skipped, and for want of what."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    named = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    terminalreporter.write_line(f"{len(skipped)} tests skipped{': ' if named else ''}{named}")
