"""What a Keras or KerasHub user does with any model, done with the backbone and with all tasks."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from tests.tasks.tiny import TASKS, WORDS, backbone_settings, ids, inputs_of, made

NAMES = ("token_ids", "segment_ids", "padding_mask")


def backbone(**kwargs):
    keras.utils.set_random_seed(3)
    quiet = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    return keras_bert.BertBackbone(**backbone_settings() | quiet | kwargs)


def own_inputs(names=NAMES, shape=(None,)):
    return {name: keras.Input(shape, dtype="int32", name=name) for name in names}


def arrays(x):
    return {name: np.asarray(value) for name, value in x.items()}


def labels_for(task, rows=3):
    """Labels that a task's own loss reads."""
    if isinstance(task, keras_bert.BertTokenClassifier):
        return np.ones((rows, 7), "int32")
    if isinstance(task, keras_bert.BertQuestionAnswerer):
        return np.array([[1, 2]] * rows, "int32")
    if isinstance(task, keras_bert.BertPretrainer | keras_bert.BertMaskedLM):
        return None  # in the batch
    return np.array([0, 1, 1], "int32")


def dataset_for(task, x, y):
    """A batch as the task takes it in a dataset."""
    if y is None:
        batch = x | {
            "mask_ids": np.full((3, 2), 6, "int32"),
            "mask_weights": np.ones((3, 2), "float32"),
            "next_sentence_labels": np.array([0, 1, 1], "int32"),
        }
        return tf.data.Dataset.from_tensors(batch)
    return tf.data.Dataset.from_tensors((x, y))


def examples(task):
    """(ids, labels) for any task: several texts an example where it reads several."""
    x = arrays(inputs_of(task))
    if isinstance(task, keras_bert.BertMultipleChoice | keras_bert.BertTextEmbedder):
        x = {name: np.stack([value, value[::-1]], 1) for name, value in x.items()}
    return x, labels_for(task)


# === Composition ===


@pytest.mark.thorough
def test_backbone_takes_a_users_own_inputs(tmp_path):
    model, x = backbone(), ids()
    output = model(own_inputs())
    assert {name: value.shape for name, value in output.items()} == {
        "sequence_output": (None, None, 8),
        "pooled_output": (None, 8),
    }
    inputs = own_inputs()
    composed = keras.Model(inputs, keras.layers.Dense(3)(model(inputs)["pooled_output"]))
    np.testing.assert_allclose(
        composed(x), composed.layers[-1](model(x)["pooled_output"]), atol=1e-6
    )
    composed.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = composed.fit(x, np.array([0, 1, 2]), epochs=8, verbose=0).history["loss"]
    assert history[-1] < history[0]
    composed.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(x), composed(x), atol=1e-6)


def test_a_model_of_the_backbones_input_holds_three_ids():
    model = backbone()
    assert {tensor.name for tensor in model.inputs} == {*NAMES}
    top = keras.Model(model.input, keras.layers.Dense(1)(model.output["pooled_output"]))
    top.compile("sgd", "mse")
    assert np.isfinite(top.fit(arrays(ids()), np.zeros((3, 1)), verbose=0).history["loss"]).all()
    batches = tf.data.Dataset.from_tensors((ids(), np.zeros((3, 1))))
    history = top.fit(batches, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_tasks_take_a_users_own_inputs(cls):
    task = cls(**made(cls))
    x = inputs_of(task)
    shapes = {name: value.shape[1:] for name, value in x.items()}
    inputs = {n: keras.Input(shape, dtype="int32", name=n) for n, shape in shapes.items()}
    output = task(inputs)
    composed = keras.Model(inputs, output)
    keras.tree.map_structure(
        lambda mine, theirs: np.testing.assert_allclose(mine, theirs, atol=1e-6),
        composed(x),
        task(x),
    )
    spec = task.compute_output_spec(inputs)
    same = keras.tree.map_structure(lambda a, b: a.shape == b.shape, spec, output)
    assert all(keras.tree.flatten(same))
    shape = task.compute_output_shape({name: value.shape for name, value in x.items()})
    real = keras.tree.map_structure(lambda value: tuple(value.shape), task(x))
    assert shape == real


@pytest.mark.parametrize("cls", [keras_bert.BertMultipleChoice, keras_bert.BertTextEmbedder])
def test_several_texts_an_example_have_a_symbolic_form(cls):
    task = cls(**made(cls))
    x, _ = examples(task)
    real = task({name: keras.ops.convert_to_tensor(value) for name, value in x.items()})
    spec = task.compute_output_spec(own_inputs(shape=(None, None)))
    assert len(spec.shape) == len(real.shape)
    inputs = own_inputs(shape=(2, 7))
    composed = keras.Model(inputs, task(inputs))
    assert composed.output_shape == (None, *real.shape[1:])
    np.testing.assert_allclose(composed(x), real, atol=1e-6)


@pytest.mark.thorough
def test_one_backbone_under_a_classifier_and_a_tagger():
    model, x, inputs = backbone(), ids(), own_inputs()
    encoded = model(inputs)
    outputs = {
        "topic": keras.layers.Dense(2, name="topic")(encoded["pooled_output"]),
        "tags": keras.layers.Dense(3, name="tags")(encoded["sequence_output"]),
    }
    joint = keras.Model(inputs, outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    joint.compile(keras.optimizers.Adam(0.01), {"topic": loss, "tags": loss})
    y = {"topic": np.array([0, 1, 1]), "tags": np.asarray(x["token_ids"]) % 3}
    history = joint.fit(arrays(x), y, epochs=20, verbose=0).history
    assert history["topic_loss"][-1] < history["topic_loss"][0]
    assert history["tags_loss"][-1] < history["tags_loss"][0]


class Rated(keras.Model):
    """A user's own model: a subclass that holds the backbone."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.score = keras.layers.Dense(1)

    def call(self, inputs, training=None):
        return self.score(self.encoder(inputs, training=training)["pooled_output"])


@pytest.mark.one_quick
@pytest.mark.parametrize("way", ["export", "saved_model", "archive"])
def test_a_users_model_around_the_backbone_is_exported(tmp_path, way):
    model, x = Rated(backbone()), ids()
    expected = model(x)
    path = str(tmp_path / "exported")
    signature = {name: tf.TensorSpec((None, None), tf.int32, name=name) for name in NAMES}
    if way == "export":
        model.export(path, verbose=False, input_signature=[signature])
    elif way == "archive":
        archive = keras.export.ExportArchive()
        archive.track(model)
        archive.add_endpoint("serve", lambda x: model(x), input_signature=[signature])
        archive.write_out(path, verbose=False)
    else:
        call = tf.function(lambda x: {"output": model(x)}, input_signature=[signature])
        tf.saved_model.save(model, path, signatures=call)
    loaded = tf.saved_model.load(path)
    found = loaded.signatures["serving_default"](**x) if way == "saved_model" else loaded.serve(x)
    found = found["output"] if isinstance(found, dict) else found
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_pictures_and_counts(tmp_path):
    task = keras_bert.BertClassifier(**made(keras_bert.BertClassifier))
    lines = []
    task.summary(print_fn=lines.append)
    assert any(f"{task.backbone.count_params():,}" in line for line in lines)
    names = {layer.name for layer in task.layers}
    assert names == {*NAMES, task.backbone.name, "head_dropout", "head"}
    parts = (task.backbone, task.head)
    assert task.count_params() == sum(part.count_params() for part in parts)


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_a_clone_is_a_plain_model_that_trains(cls):
    """As KerasHub's tasks: new weights, the same network, compiled with the same loss."""
    keras.utils.set_random_seed(4)
    task = cls(**made(cls))
    x = inputs_of(task)
    if isinstance(task, keras_bert.BertMaskedLM):
        with pytest.raises(NotImplementedError, match="shares the word table of its backbone"):
            keras.models.clone_model(task)
        return
    clone = keras.models.clone_model(task)
    before = clone.get_weights()
    assert [v.shape for v in clone.weights] == [v.shape for v in task.weights]
    clone.set_weights(task.get_weights())
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), clone(x), task(x)
    )
    clone.set_weights(before)
    if cls in (keras_bert.BertClassifier, keras_bert.BertRelationClassifier):
        y = np.array([0, 1, 1])
        found = clone.evaluate(arrays(x), y, verbose=0, return_dict=True)
        task.set_weights(before)
        wanted = task.evaluate(arrays(x), y, verbose=0, return_dict=True)
        assert found == pytest.approx(wanted, abs=1e-5)
        if cls is keras_bert.BertClassifier:  # no weight is left out of its loss
            clone.fit(arrays(x), y, verbose=0)


def test_a_clone_keeps_what_compile_was_told():
    task = keras_bert.BertClassifier(**made(keras_bert.BertClassifier))
    task.compile(keras.optimizers.SGD(0.25), metrics=[keras.metrics.Precision()])
    clone = keras.models.clone_model(task)
    assert float(clone.optimizer.learning_rate) == 0.25
    x, y = arrays(inputs_of(task)), np.array([0, 1, 1])
    clone.set_weights(task.get_weights())
    found = clone.evaluate(x, y, verbose=0, return_dict=True)
    assert found == pytest.approx(task.evaluate(x, y, verbose=0, return_dict=True), abs=1e-5)


# === Calls with more than the three ids ===


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_positions_groups_and_embeddings_reach_the_backbone_of_a_task(cls):
    task = cls(**made(cls))
    x = inputs_of(task)
    places = keras.ops.convert_to_tensor(np.tile(np.arange(7), (3, 1)).astype("int32"))
    same = {
        "position_ids": places,
        "sequence_ids": places * 0,
        "token_embeddings": task.backbone.token_embedding(x["token_ids"]),
    }
    expected, found = task(x), task(x | same)
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found, expected
    )
    other = task(x | {"position_ids": (places + 1) % 7})
    same = keras.tree.map_structure(lambda a, b: np.allclose(a, b), other, expected)
    assert not any(keras.tree.flatten(same))


def test_options_may_be_of_another_type_than_the_ids():
    """As on a GPU, where batches that come ahead of their step are int64."""
    task = keras_bert.BertClassifier(**made(keras_bert.BertClassifier))
    texts = keras.ops.convert_to_tensor(np.array([[0, 1, 2, 3, 7, 8, 9, 10, 14, 15, -1, -1]]))
    x = {name: keras.ops.cast(value, "int64") for name, value in ids().items()}
    mask = np.arange(7) < np.array([[4], [4], [2]])
    x["padding_mask"] = keras.ops.convert_to_tensor(mask.astype("int64"))
    found = task(x | {"packed_from": texts})
    np.testing.assert_allclose(found, task(x), atol=1e-6)


def test_gradients_with_respect_to_embeddings():
    """By a difference quotient in the direction of the gradient."""
    task = keras_bert.BertClassifier(**made(keras_bert.BertClassifier))
    x = inputs_of(task)
    start = task.backbone.token_embedding(x["token_ids"])
    with tf.GradientTape() as tape:
        tape.watch(start)
        output = tf.reduce_sum(task(x | {"token_embeddings": start})[:, 1])
    gradient = tape.gradient(output, start)
    step = 1e-2 * gradient / tf.norm(gradient)
    ends = [tf.reduce_sum(task(x | {"token_embeddings": start + s * step})[:, 1]) for s in (1, -1)]
    np.testing.assert_allclose(ends[0] - ends[1], 2e-2 * tf.norm(gradient), rtol=1e-2)


# === Without compile ===


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_without_compile_a_task_predicts_and_says_what_keras_says_of_the_rest(cls):
    task = cls(**made(cls), compile=False)
    x, y = examples(task)
    expected = task({name: keras.ops.convert_to_tensor(value) for name, value in x.items()})
    found = task.predict(x, verbose=0)
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected
    )
    batches = tf.data.Dataset.from_tensors(x)
    found = task.predict(batches, verbose=0)
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected
    )
    data = dataset_for(task, x, y)
    for call in (task.fit, task.evaluate):
        with pytest.raises(ValueError, match=r"You must call `compile\(\)`"):
            call(data, verbose=0)
    with pytest.raises(ValueError, match=r"You must call `compile\(\)`"):
        task.train_on_batch(x, y)
    task.compile()
    assert np.isfinite(task.evaluate(data, verbose=0, return_dict=True)["loss"])


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "cls",
    [
        cls
        if cls in (keras_bert.BertTokenClassifier, keras_bert.BertPretrainer)
        else pytest.param(cls, marks=pytest.mark.slow)
        for cls in TASKS
    ],
)
def test_a_task_that_is_compiled_later_trains_with_xla(cls):
    task = cls(**made(cls), compile=False)
    task.compile(jit_compile=True)
    data = dataset_for(task, *examples(task))
    assert np.isfinite(task.fit(data, verbose=0).history["loss"]).all()


@pytest.mark.thorough
def test_verbs_answer_without_compile():
    quiet = {"compile": False}
    text = "the cat sat on the mat ."
    classifier = keras_bert.BertClassifier(**made(keras_bert.BertClassifier, **quiet))
    assert len(classifier.classify([text])[0]) == 1
    cls = keras_bert.BertTokenClassifier
    tagger = cls(**made(cls, labels=["O", "B-X"], num_classes=None, **quiet))
    assert len(tagger.predict_tags([text])[0]) == len(text.split())
    answerer = keras_bert.BertQuestionAnswerer(**made(keras_bert.BertQuestionAnswerer, **quiet))
    assert len(answerer.answer(["who sat ?"], [text])) == 1
    chooser = keras_bert.BertMultipleChoice(**made(keras_bert.BertMultipleChoice, **quiet))
    assert chooser.choose([text], [["a dog", "it ran"]])[1].shape == (1, 2)
    embedder = keras_bert.BertTextEmbedder(**made(keras_bert.BertTextEmbedder, **quiet))
    assert embedder.embed([text]).shape == (1, 8)
    filler = keras_bert.BertMaskedLM(**made(keras_bert.BertMaskedLM, **quiet))
    assert len(filler.fill("the [MASK] sat", top_k=3)[0]) == 3


# === Gradient checkpointing ===


@pytest.mark.parametrize("eager", [True, False])
def test_gradient_checkpointing_gives_the_same_gradients(eager):
    found = []
    for checkpointing in (False, True):
        model = backbone(gradient_checkpointing=checkpointing)

        def gradients(model=model):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(ids(), training=True)["sequence_output"] ** 3)
            weights = [w.value for w in model.trainable_weights if "pooler" not in w.path]
            return [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]

        found.append(gradients() if eager else tf.function(gradients)())
    for without, with_it in zip(*found, strict=True):
        np.testing.assert_allclose(with_it, without, rtol=1e-4, atol=1e-6)


def test_gradient_checkpointing_in_a_plain_model_run_eagerly():
    """One step of SGD moves weights by their gradient: twice as far if that were counted twice."""
    moved = []
    for checkpointing in (False, True):
        encoder = backbone(gradient_checkpointing=checkpointing)
        model = keras.Model(encoder.input, keras.layers.Dense(1)(encoder.output["sequence_output"]))
        keras.utils.set_random_seed(5)
        weights = [v.numpy() for v in encoder.trainable_weights]
        model.layers[-1].kernel.assign(np.ones((8, 1)))
        model.compile(keras.optimizers.SGD(1.0), "mse", run_eagerly=True)
        model.fit(arrays(ids()), np.ones((3, 7, 1)), verbose=0, batch_size=3)
        pairs = zip(encoder.trainable_weights, weights, strict=True)
        moved.append([after.numpy() - before for after, before in pairs])
    for without, with_it in zip(*moved, strict=True):
        np.testing.assert_allclose(with_it, without, rtol=1e-3, atol=1e-6)


# === Ids and labels out of range ===

WRONG = [
    ("token_ids", len(WORDS.split())),
    ("token_ids", -1),
    ("segment_ids", 2),
    ("segment_ids", -1),
    ("position_ids", 24),
    ("position_ids", -3),
]


def with_wrong(x, name, value):
    x = arrays(x)
    if name == "position_ids":
        x[name] = np.broadcast_to(np.arange(x["token_ids"].shape[-1]), x["token_ids"].shape)
    x[name] = x[name].astype("int32").copy()
    x[name][1, ..., 2] = value
    return x


@pytest.mark.one_quick
@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_call_names_an_id_outside_of_its_table(name, value):
    x = with_wrong(ids(), name, value)
    for model in (backbone(), keras_bert.BertClassifier(**made(keras_bert.BertClassifier))):
        message = f"{name} from .* expected 0 to .* row 1 has {value}"
        with pytest.raises(ValueError, match=message):
            model(x)


@pytest.fixture(scope="module")
def compiled():
    return tf.function(backbone(), jit_compile=True)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_compiled_call_gives_nan_for_a_row_with_an_id_outside_of_its_table(name, value, compiled):
    x = {key: tf.constant(ids_) for key, ids_ in with_wrong(ids(), name, value).items()}
    for found in compiled(x).values():
        bad = np.isnan(found.numpy().reshape(3, -1))
        assert bad[1].all() and not bad[[0, 2]].any()


@pytest.mark.parametrize("cls", [keras_bert.BertMaskedLM, keras_bert.BertRelationClassifier])
def test_a_compiled_call_gives_nan_for_a_position_outside_of_the_row(cls):
    task = cls(**made(cls))
    x = inputs_of(task)
    name = next(name for name in x if name.endswith("_positions"))
    x[name] = tf.constant([[1, 2], [1, 7], [-1, 2]])
    output = tf.function(task, jit_compile=True)(x)
    output = output["mlm"] if isinstance(output, dict) else output
    bad = np.isnan(output.numpy().reshape(3, -1)).any(axis=1)
    assert bad.tolist() == [False, True, True]


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("cls", "jit_compile"), [(keras_bert.BertClassifier, True), *((cls, False) for cls in TASKS)]
)
def test_datasets_with_ids_outside_of_their_tables_are_refused(cls, jit_compile, request):
    if not jit_compile:
        request.getfixturevalue("eager")  # the checks are in tf.data
    task = cls(**made(cls))
    task.compile(jit_compile=jit_compile)
    x, y = examples(task)
    for name, value in (("token_ids", 99), ("segment_ids", 2), ("position_ids", -1)):
        bad = with_wrong(x, name, value)
        data = dataset_for(task, bad, y)
        alone = tf.data.Dataset.from_tensors(bad)
        calls = [lambda d=data: task.evaluate(d, verbose=0)]
        calls.append(lambda d=alone: task.predict(d, verbose=0))
        if cls is keras_bert.BertClassifier:
            calls.append(lambda d=data: task.fit(d, verbose=0))
        for call in calls:
            message = f"{name}: expected 0 to .*got"
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                call()
    assert np.isfinite(task.evaluate(dataset_for(task, x, y), verbose=0, return_dict=True)["loss"])


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("cls", "jit_compile"),
    [
        (keras_bert.BertClassifier, True),
        *((cls, False) for cls in TASKS if cls is not keras_bert.BertTextEmbedder),  # has scores
    ],
)
def test_datasets_with_labels_out_of_range_are_refused(cls, jit_compile, request):
    if not jit_compile:
        request.getfixturevalue("eager")
    task = cls(**made(cls))
    task.compile(jit_compile=jit_compile)
    x, y = examples(task)
    for value in (-1, 99, 0.5):
        if cls is keras_bert.BertTokenClassifier and value == -1:
            continue  # a token without a label
        if y is None and value == 0.5:
            continue  # the contract's labels are integers
        if y is None:
            name, bad = "mask_ids", x | {"mask_ids": np.full((3, 2), value, "int32")}
            bad |= {"mask_weights": np.ones((3, 2), "float32")}
            bad |= {"next_sentence_labels": np.zeros(3, "int32")}
            data = tf.data.Dataset.from_tensors(bad)
        else:
            name, bad = "labels", y.astype(type(value))
            bad.flat[1] = value
            data = tf.data.Dataset.from_tensors((x, bad))
        calls = (task.fit, task.evaluate) if jit_compile else (task.evaluate,)
        for call in calls:
            message = f"{name}.*: expected {'whole numbers from ' * (value == 0.5)}0 to "
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                call(data, verbose=0)


@pytest.mark.thorough
def test_tokens_without_a_label_are_let_through():
    task = keras_bert.BertTokenClassifier(**made(keras_bert.BertTokenClassifier))
    x, y = examples(task)
    y[:, 3:] = -1
    history = task.fit(tf.data.Dataset.from_tensors((x, y)), verbose=0).history
    assert np.isfinite(history["loss"]).all()


# === Presets by every name ===

PRESETS = ["bert_mini_en_public_domain", "tests/golden/tiny_hf"]
PREPROCESSORS = {cls.preprocessor_cls for cls in TASKS}


@pytest.mark.parametrize("preset", PRESETS)
def test_parts_are_made_from_every_checkpoint(preset, pytestconfig):
    preset = pytestconfig.rootpath / preset if "/" in preset else preset
    task = keras_bert.BertClassifier.from_preset(preset, num_classes=2, skip_mismatch=True)
    encoder = keras_bert.BertBackbone.from_preset(preset)
    for mine, theirs in zip(encoder.weights, task.backbone.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert keras_bert.BertBackbone.from_preset(preset, dtype="bfloat16").compute_dtype == "bfloat16"
    tokenizer = keras_bert.BertTokenizer.from_preset(preset)
    own = task.preprocessor.tokenizer
    assert tokenizer.get_vocabulary() == own.get_vocabulary()
    assert tokenizer.get_config() | {"name": 0} == own.get_config() | {"name": 0}
    changed = keras_bert.BertTokenizer.from_preset(preset, lowercase=not tokenizer.lowercase)
    assert changed.lowercase != tokenizer.lowercase


@pytest.mark.parametrize("cls", sorted(PREPROCESSORS, key=lambda cls: cls.__name__))
def test_preprocessors_come_back_from_their_own_folders(cls, tmp_path):
    settings = made(keras_bert.BertClassifier)
    asks = "max_question_length" in cls.settings
    kwargs = {"max_question_length": 5, "stride": 3} if asks else {}
    before = cls(settings["preprocessor"].tokenizer, 17, "bucket", **kwargs)
    before.save_to_preset(str(tmp_path / "saved"))
    after = cls.from_preset(tmp_path / "saved")
    assert {n: getattr(after, n) for n in cls.settings} == {
        n: getattr(before, n) for n in cls.settings
    }
    assert after.tokenizer.get_vocabulary() == before.tokenizer.get_vocabulary()
    assert cls.from_preset(tmp_path / "saved", sequence_length=19).sequence_length == 19
    with pytest.raises(TypeError, match="unknown argument sequence_lenght: expected settings of"):
        cls.from_preset(tmp_path / "saved", sequence_lenght=19)
    again = keras_bert.BertTokenizer.from_preset(tmp_path / "saved")
    assert again.get_vocabulary() == before.tokenizer.get_vocabulary()
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        keras_bert.BertBackbone.from_preset(tmp_path / "saved")
