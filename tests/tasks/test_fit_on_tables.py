"""Tasks on tables that are read in pieces: the rows of memory, in an order of seed and epoch."""

import json
import logging
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert.data import Table, table_rows, table_source
from keras_bert.tasks import run_rows
from keras_bert.training import Resume
from tests.tasks import tiny

N = 203
rng = np.random.default_rng(4)
WORDS = "the a cat sat on mat dog slept it ran".split()


def some_text(most=8):
    return " ".join(rng.choice(WORDS, rng.integers(2, most)))


# The number of a row is that of its last words in binary.
TEXTS = [some_text() + " " + " ".join("?!"[int(bit)] for bit in f"{i:b}") for i in range(N)]
LABELS = ["good" if "cat" in text else "bad" for text in TEXTS]


def write(path, **columns):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(table_rows, "PIECE_ROWS", 10)
    monkeypatch.setattr(table_source, "WINDOW_ROWS", 48)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files, one of them gzipped."""
    import gzip

    folder = tmp_path_factory.mktemp("reviews")
    write(folder / "a.jsonl", review=TEXTS[:120], stars=LABELS[:120])
    rest = write(folder / "b.jsonl", review=TEXTS[120:], stars=LABELS[120:])
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(rest.read_bytes()))
    rest.unlink()
    return folder


@pytest.fixture(scope="module")
def model():
    return keras_bert.BertClassifier(**tiny.made(keras_bert.BertClassifier, labels=["bad", "good"]))


def table(files, **settings):
    return Table(str(files / "*"), text="review", label="stars", **settings)


def arrays(batches):
    return [tuple(np.asarray(part) for part in tf.nest.flatten(batch)) for batch in batches]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def rows_in(batches, real=lambda batch: np.asarray(batch[2]) > 0):
    """The ids of each text of the batches, without padding."""
    found = []
    for batch in batches:
        ids, mask = (np.asarray(batch[0][n]) for n in ("token_ids", "padding_mask"))
        kept = zip(ids, mask, real(batch), strict=True)
        found += [tuple(row[m > 0].tolist()) for row, m, there in kept if there]
    return found


@pytest.fixture(scope="module")
def expected(model):
    ids, _, _ = model.make_rows(TEXTS)
    mask = ids["padding_mask"]
    found = [tuple(r[m > 0].tolist()) for r, m in zip(ids["token_ids"], mask, strict=True)]
    assert len(set(found)) == N
    return found


@pytest.mark.thorough
def test_an_epoch_has_every_row_once_in_an_order_of_seed_and_epoch(model, files, expected):
    def source(seed):
        return model.source(table(files), batch_size=12, shuffle=True, seed=seed)

    first = source(3)
    assert (first.size, first.steps, first.lanes) == (N, 17, 12)
    batches = list(first.stream().take(2 * 17))
    epochs = [rows_in(batches[:17]), rows_in(batches[17:])]
    orders = [[expected.index(row) for row in rows] for rows in epochs]
    for order in orders:
        assert sorted(order) == list(range(N))
        # From far apart, and in no order; of a batch too.
        assert abs(np.corrcoef(order, range(N))[0, 1]) < 0.3
        assert all(np.ptp(order[i : i + 12]) > N / 3 for i in range(0, N - 12, 12))
    assert orders[0] != orders[1]
    assert_same(arrays(source(3).stream(13).take(8)), arrays(batches[13:21]))
    assert rows_in(source(4).one_pass()) != epochs[0]
    assert first.facts() == source(3).facts()
    assert first.facts() != source(4).facts()
    labels = [int(label) for batch in batches[:17] for label in np.asarray(batch[1])]
    assert labels == [int(LABELS[i] == "good") for i in orders[0]]
    plain = model.source(table(files), batch_size=12)
    assert rows_in(plain.one_pass()) == expected


@pytest.mark.one_quick
@pytest.mark.parametrize(("workers", "lanes"), [(2, 12), (4, 3)])
def test_workers_make_their_own_parts_of_the_batches_of_one(
    model, files, monkeypatch, workers, lanes
):
    monkeypatch.setattr(table_source, "LANES", lanes)
    read = [[]]
    original = table_rows.TableReader.read

    def reading(self, index, piece, opened=None):
        read[-1].append(piece)
        return original(self, index, piece, opened)

    monkeypatch.setattr(table_rows.TableReader, "read", reading)
    source = model.source(table(files), batch_size=12, shuffle=True, seed=1)
    source._whole = True  # as with several replicas
    one = arrays(source.stream(1).take(source.steps - 1))
    parts = []
    for worker in range(workers):
        read.append([])
        share = (worker, workers, 1)
        parts.append(arrays(source.stream(1, share).take(source.steps - 1)))
    joined = [
        tuple(np.concatenate(columns) for columns in zip(*batch, strict=True))
        for batch in zip(*parts, strict=True)
    ]
    assert_same(joined, one)
    assert source.reads_apart(workers) == (lanes % workers == 0)
    # Windows ahead may reach into the next epoch; so the pieces of one epoch are counted apart.
    if source.reads_apart(workers):
        pieces, own = len(source._index.rows), lanes // workers
        found = []
        for worker in range(workers):
            read.append([])
            list(source._windows(0, 1, range(own * worker, own * worker + own)))
            found.append({*read[-1]})
        assert set.union(*found) == set(range(pieces))
        assert len(found[0] & found[1]) <= 1  # the piece at the border


@pytest.mark.slow
def test_replicas_of_a_worker_get_equal_parts(model, files):
    source = model.source(table(files), batch_size=12, shuffle=True, seed=1)
    source._whole = True
    one = arrays(source.stream().take(source.steps))
    halves = arrays(source.stream(0, (0, 1, 2)).take(2 * source.steps))
    joined = [
        tuple(np.concatenate(pair) for pair in zip(*halves[i : i + 2], strict=True))
        for i in range(0, len(halves), 2)
    ]
    assert_same(joined, one)


@pytest.mark.thorough
def test_threads_leave_a_gpu_alone(model, files, monkeypatch):
    """Operations of several threads on a GPU corrupt each other (tensorflow/tensorflow#123980)."""
    from tensorflow.python.eager import context

    from keras_bert.data import ragged
    from keras_bert.serving.signatures import Column

    monkeypatch.setattr("keras_bert.tasks.task.CHUNK", 50)
    places = {}

    def watched(name, function):
        def call(*args, **kwargs):
            thread = threading.current_thread()
            if thread is not threading.main_thread() and tf.executing_eagerly():
                places.setdefault(name, set()).add(context.context().device_name or "any")
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(Column, "tensor", watched("tensors", Column.tensor))
    monkeypatch.setattr(run_rows, "dense", watched("cut", run_rows.dense))
    monkeypatch.setattr(model, "labels_of_rows", watched("labels", model.labels_of_rows))
    model.compile(learning_rate=0.0)
    model.fit(TEXTS, LABELS, batch_size=32, verbose=0)
    model.classify(TEXTS, batch_size=32)
    model.fit(table(files), batch_size=32, verbose=0)
    assert set(places) == {"tensors", "cut", "labels"}
    assert {name.rpartition("device:")[2] for found in places.values() for name in found} == {
        "CPU:0"
    }, places
    with ragged.host_only():
        assert "CPU" in context.context().device_name


@pytest.mark.thorough
def test_packed_rows_of_a_stream_hold_every_text_once(files, expected):
    model = keras_bert.BertClassifier(
        **tiny.made(keras_bert.BertClassifier, labels=["bad", "good"])
    )
    model.compile(packing=True)
    source = model.source(table(files), batch_size=24, shuffle=True, seed=2)
    batches = list(source.stream().take(2 * source.steps))
    cells = np.asarray(batches[0][0]["packed_from"])
    assert cells.shape == (source.batch_size, 128) and source.batch_size < 8
    for epoch in range(2):
        rows = rows_in(batches[epoch * source.steps :][: source.steps])
        assert sorted(rows) == sorted(expected)
    filled = np.mean([np.mean(np.asarray(b[0]["packed_from"]) >= 0) for b in batches[:-1]])
    assert filled > 0.4  # of pieces of ten texts
    assert_same(arrays(source.stream(5).take(3)), arrays(batches[5:8]))
    assert source.texts_per_step == N / source.steps


@pytest.mark.thorough
def test_a_table_is_counted_anew_for_another_vocabulary_and_by_examples(tmp_path):
    several = [["good"] * (i % 5 > 0) + ["bad"] * (i % 2) for i in range(N)]
    shared = Table(write(tmp_path / "a.jsonl", text=TEXTS, label=several))
    rows = []
    for words in (tiny.WORDS, tiny.WORDS.replace("dog ##s", "##o ##g").replace("who", "d")):
        settings = tiny.made(
            keras_bert.BertClassifier, problem="multi_label", labels=["good", "bad"]
        )
        tokenizer = keras_bert.BertTokenizer(words.split())
        settings["preprocessor"] = keras_bert.BertClassifierPreprocessor(tokenizer, 16)
        model = keras_bert.BertClassifier(**settings)
        model.compile(packing=True)
        source = model.source(shared, batch_size=24, shuffle=True, class_weight="balanced")
        batches = list(source.one_pass())
        labels, weights = (np.concatenate([np.asarray(b[i]) for b in batches]) for i in (1, 2))
        used = weights.max(axis=1) > 0
        assert used.sum() == N
        # (rows without) / (rows with) for positive labels, of texts and not of packed rows.
        with_label = np.array([sum("good" in row for row in several), N // 2])
        factors = np.where(labels > 0, (N - with_label) / with_label, 1)
        np.testing.assert_allclose(weights[used], factors[used], rtol=1e-6)
        rows.append(source.size)
    assert rows[1] > rows[0]


def in_memory(name):
    """(task class, its arguments, columns of a table, (x, y) as in memory, named columns)."""
    firsts, seconds = TEXTS, TEXTS[::-1]
    number = np.arange(N) / N
    words = [text.split() for text in TEXTS]
    spans = [[[0, len(w[0])], [len(w[0]) + 1, len(w[0]) + 1 + len(w[1])]] for w in words]
    starts = [len(w[0]) + 1 for w in words]
    answers = [None if i % 3 == 0 else (w[1], s) for i, (w, s) in enumerate(zip(words, starts))]  # noqa: B905
    squad = [
        {"text": [a[0]], "answer_start": [a[1]]} if a else {"text": [], "answer_start": []}
        for a in answers
    ]
    tags = [["X" if word == "cat" else "O" for word in row] for row in words]
    entities = [[(s, s + len(w[1]), "T")] for w, s in zip(words, starts, strict=True)]
    choices = [list(pair) for pair in zip(firsts, seconds, strict=True)]
    k = keras_bert
    named = ["good", "bad"]
    ids = [named.index(label) for label in LABELS]
    several = [[], ["good"], ["good", "bad"]] * N
    return {
        "pairs": (
            k.BertClassifier,
            {"labels": named},
            {"text": firsts, "b": seconds, "label": LABELS},
            ((firsts, seconds), LABELS),
            {"text_pair": "b"},
        ),
        "several": (
            k.BertClassifier,
            {"problem": "multi_label", "labels": named},
            {"text": firsts, "label": several[:N]},
            (firsts, several[:N]),
            {},
        ),
        "ratings": (
            k.BertClassifier,
            {"labels": [0, 1]},
            {"text": firsts, "label": ids, "weight": number.tolist()},
            (firsts, ids, number),
            {"weight": "weight"},
        ),
        "regression": (
            k.BertClassifier,
            {"problem": "regression", "num_classes": 1},
            {"text": firsts, "label": number.tolist()},
            (firsts, number),
            {},
        ),
        "tags": (
            k.BertTokenClassifier,
            {"num_classes": 2},
            {"words": words, "tags": tags},
            (words, tags),
            {},
        ),
        "entities": (
            k.BertTokenClassifier,
            {"num_classes": 3},
            {"text": firsts, "entities": entities},
            (firsts, entities),
            {"entities": "entities"},
        ),
        "answers": (
            k.BertQuestionAnswerer,
            {},
            {"question": seconds, "context": firsts, "answers": squad},
            ((seconds, firsts), answers),
            {},
        ),
        "choices": (
            k.BertMultipleChoice,
            {},
            {"context": firsts, "x": firsts, "y": seconds, "label": ids},
            ((firsts, choices), ids),
            {"choices": ["x", "y"]},
        ),
        "relations": (
            k.BertRelationClassifier,
            {"labels": named},
            {"text": firsts, "spans": spans, "label": LABELS},
            ((firsts, spans), LABELS),
            {},
        ),
        "cosines": (
            k.BertTextEmbedder,
            {"loss": "cosine"},
            {"text": firsts, "text_pair": seconds, "label": number.tolist()},
            ((firsts, seconds), number),
            {},
        ),
        "negatives": (
            k.BertTextEmbedder,
            {},
            {"text": firsts, "text_pair": seconds, "n": [[text] for text in TEXTS]},
            ((firsts, seconds, TEXTS), None),
            {"negatives": "n"},
        ),
    }[name]


NAMES = ["pairs", "several", "ratings", "regression", "tags", "entities", "answers", "choices"]
NAMES += ["relations", "cosines", "negatives"]


QUICK = ("pairs", "answers")


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NAMES]
)
def test_a_table_gives_the_batches_of_examples_in_memory(tmp_path, name):
    cls, made, columns, data, named = in_memory(name)
    model = cls(**tiny.made(cls, **made))
    path = write(tmp_path / "rows.jsonl", **columns)
    found = arrays(model.source(Table(path, **named), batch_size=24).one_pass())
    x, y, *weights = data
    if y is None or model.brings_labels(x):
        y = np.arange(N) if y is None else y
    x, y = model._labelled(x, y, "fit")
    weights = np.asarray(weights[0], "float32") if weights else None
    expected = arrays(model.source(x, y, weights, batch_size=24).one_pass())
    if len(found[0]) > len(expected[0]):  # weights of 1
        assert all((batch[-1] == 1).all() for batch in found)
        found = [batch[:-1] for batch in found]
    if name == "negatives":  # whose labels only tell the rows of a batch apart
        found, expected = ([batch[:3] for batch in batches] for batches in (found, expected))
    assert_same(found, expected)


@pytest.mark.thorough
def test_fit_on_files_resumes_and_ends_as_an_unbroken_run(files, tmp_path):
    def fit(callbacks, **length):
        keras.utils.set_random_seed(1)
        model = keras_bert.BertClassifier(**tiny.made(keras_bert.BertClassifier))
        model.compile(learning_rate=1e-3)
        # The validation data have the same columns.
        validation = {"validation_data": files / "a.jsonl"} if "epochs" in length else {}
        history = model.fit(
            str(files / "*"),
            text="review",
            label="stars",
            batch_size=32,
            class_weight="balanced",
            callbacks=callbacks,
            verbose=0,
            **validation,
            **length,
        )
        return model, history

    whole, history = fit([], epochs=2)
    assert whole.labels == ["bad", "good"]  # found in the files
    assert len(history.history["val_accuracy"]) == 2 and whole.run.done == 14
    resumed = [Resume(tmp_path / "run", every_steps=1)]

    class Stop(keras.callbacks.Callback):
        def after_step(self, logs):
            if self.model.run.done == 9:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit([*resumed, Stop()], epochs=2)
    again, _ = fit([Resume(tmp_path / "run")], epochs=2)
    for ours, theirs in zip(again.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # The order of other rows would be another run.
    (tmp_path / "other").mkdir()
    for path in files.iterdir():
        data = path.read_bytes().replace(b"cat", b"mat")
        (tmp_path / "other" / path.name).write_bytes(data)
    with pytest.raises(ValueError, match="other data or settings: other texts, labels"):
        again.fit(
            str(tmp_path / "other" / "*"),
            text="review",
            label="stars",
            batch_size=32,
            class_weight="balanced",
            epochs=2,
            callbacks=[Resume(tmp_path / "run")],
        )
    scores = whole.evaluate(table(files), verbose=0)
    texts = whole.evaluate(TEXTS, LABELS, verbose=0)
    np.testing.assert_allclose(scores, texts, rtol=1e-5)
    outputs = whole.predict(table(files), verbose=0)  # labels are not read
    np.testing.assert_allclose(outputs, whole.predict(TEXTS, verbose=0), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_masked_language_models_read_texts(files, expected):
    model = keras_bert.BertMaskedLM(**tiny.made(keras_bert.BertMaskedLM))
    source = model.source(Table(files / "a.jsonl", text="review"), batch_size=24, shuffle=True)
    batches = arrays(source.stream().take(10))
    assert_same(arrays(source.stream(7).take(3)), batches[7:])
    assert source.steps == 5


def test_what_is_wrong_is_named(model, files, tmp_path, caplog):
    bad = write(
        tmp_path / "bad.jsonl", text=["a cat", "a dog", "it ran"], label=["good", "?", "bad"]
    )
    with pytest.raises(ValueError, match=r"bad.jsonl, line 2: label '\?' is unknown; expected bad"):
        model.fit(bad)
    with caplog.at_level(logging.WARNING, "keras_bert"):
        source = model.source(Table(bad, skip_bad_rows=True), batch_size=2)
    assert source.size == 2 and "bad.jsonl: 1 row left out, line 2; the first: " in caplog.text
    three = keras_bert.BertClassifier(**tiny.made(keras_bert.BertClassifier, num_classes=2))
    with pytest.raises(ValueError, match=r"labels hold 3 names \(\?, bad, good\)"):
        three.fit(bad)
    with pytest.raises(ValueError, match=r"x='bad.jsonl': expected a text; pass Path"):
        model.predict("bad.jsonl")  # that is one text, and a file for `fit`
    assert model.predict("the cat.txt sat", verbose=0).shape == (2,)
    for error, message, call in (
        (ValueError, "stars='x': expected columns for text", {"x": Table(bad, stars="x")}),
        (ValueError, "no key 'review'", {"x": bad, "text": "review"}),
        (FileNotFoundError, "nowhere.csv is not there", {"x": "nowhere.csv"}),
        (
            TypeError,
            "text='a': expected files or a table, not a Table",
            {"x": Table(bad), "text": "a"},
        ),
        (TypeError, "label='a': expected files", {"x": ["a"], "y": [0], "label": "a"}),
        (TypeError, "text='a': expected files or a table, not dict", {"x": {}, "text": "a"}),
        (ValueError, "expected no sample_weight", {"x": table(files), "sample_weight": [1.0]}),
        (
            ValueError,
            "validation_split: .* pass validation_data",
            {"x": bad, "validation_split": 0.5},
        ),
        (ValueError, "overlap= needs texts", {"x": table(files), "overlap": 2}),
    ):
        with pytest.raises(error, match=message):
            model.fit(**call)
    tagger = keras_bert.BertTokenClassifier(**tiny.made(keras_bert.BertTokenClassifier))
    with pytest.raises(TypeError, match="answer_file answers files"):
        tagger.predict(Table(bad))
    for wrong in (None, "O B-X"):
        tags = [["O", "O"], wrong, ["B-X", "O"]]
        bad = write(tmp_path / "tags.jsonl", words=[["a", "cat"]] * 3, tags=tags)
        with pytest.raises(ValueError, match="tags.jsonl, line 2: "):
            tagger.fit(bad)


@pytest.mark.slow
def test_a_question_without_answer_sets_the_threshold(tmp_path):
    model = keras_bert.BertQuestionAnswerer(**tiny.made(keras_bert.BertQuestionAnswerer))
    columns = {"question": ["who ?"] * 4, "context": ["the cat sat"] * 4}
    starts = [None, "4", 4, 4]
    path = write(tmp_path / "a.jsonl", **columns, a=["", "cat", "cat", "cat"], s=starts)
    wrong = write(tmp_path / "b.jsonl", **columns, a=["", "cat", "dog", "cat"], s=starts)
    with pytest.raises(ValueError, match=r"b.jsonl, line 3: .*'dog' should start at character 4"):
        model.fit(wrong, answer="a", answer_start="s")
    assert model.null_threshold is None
    model.fit(path, answer="a", answer_start="s", verbose=0)
    assert model.null_threshold == 0.0
