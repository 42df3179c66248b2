"""The preprocessor of every task: its settings may change, and it fits its backbone."""

import pytest

from keras_bert import BertTokenizer
from keras_bert.text.tokenizer import SETTINGS
from tests.serving import made

TEXTS = ["The rain, the boats and Boats", "wind ice"]


def ask(kind, model):
    """The verbs' answers to few texts, and to more than fit into one batch."""
    answers = []
    for texts in (TEXTS, TEXTS * 20):
        for signature, inputs in made.asked(kind, texts).items():
            answers.append((signature, made.said(kind, model, signature, inputs)))
    return answers


def like(model, tokenizer_settings, settings):
    """The same weights, with a preprocessor that was made with other settings."""
    old = model.preprocessor
    tokenizer = BertTokenizer(
        **{
            **{name: getattr(old.tokenizer, name) for name in SETTINGS},
            **tokenizer_settings,
            "vocabulary": old.tokenizer.get_vocabulary(),
        }
    )
    values = {name: getattr(old, name) for name in old.settings} | settings
    config = {
        k: v for k, v in model.get_config().items() if k not in ("backbone", "preprocessor", "name")
    }
    other = type(model)(
        backbone=model.backbone, preprocessor=type(old)(tokenizer, **values), **config
    )
    for weight, value in zip(other.weights, model.weights, strict=True):
        weight.assign(value)
    return other


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("classifier", "answerer") else pytest.param(kind, marks=pytest.mark.slow)
        for kind in made.KINDS
    ],
)
def test_settings_that_change_after_use_are_heeded(kind, request):
    model = made.make(kind)
    before = ask(kind, model)
    tokenizer_settings = {"lowercase": False, "special_tokens_in_text": True, "max_word_length": 3}
    settings = {"sequence_length": 11, "padding": "full"}
    if kind == "answerer":
        settings = {"max_question_length": 3, "stride": 2} | settings
    if kind == "tagger":
        settings = {"stride": 3} | settings
    if kind == "relator":
        settings["markers"] = ("a", "the", "[MASK]", "red")
    for name, value in tokenizer_settings.items():
        setattr(model.preprocessor.tokenizer, name, value)
    for name, value in settings.items():
        setattr(model.preprocessor, name, value)
    after = ask(kind, model)
    assert str(after) != str(before)
    request.getfixturevalue("eager")  # holds no settings in a graph
    expected = ask(kind, like(model, tokenizer_settings, settings))
    for (signature, got), (_, wanted) in zip(after, expected, strict=True):
        made.check(got, wanted, f"{kind} {signature}")


@pytest.mark.one_quick
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", made.KINDS)
def test_wrong_settings_are_refused_when_they_are_set(kind):
    model = made.make(kind)
    found = model.preprocessor
    before = ask(kind, model)
    with pytest.raises(ValueError, match="sequence_length=3: expected"):
        found.sequence_length = 3
    with pytest.raises(ValueError, match="padding='z': expected"):
        found.padding = "z"
    for name, value in {
        "lowercase": "no",
        "strip_accents": 1,
        "special_tokens_in_text": None,
        "max_word_length": 0,
        "added_tokens": "the",
        "exact_tokens": ["[E9]"],
    }.items():
        with pytest.raises(ValueError, match=name):
            setattr(found.tokenizer, name, value)
    assert str(ask(kind, model)) == str(before)


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", made.KINDS)
def test_a_preprocessor_has_to_fit_the_backbone(kind):
    """At construction, where another is put in its place, and where it changes."""
    model = made.make(kind)
    old = model.preprocessor
    known = old.tokenizer.get_vocabulary()
    tokens = known + [f"w{i}" for i in range(1 + model.backbone.vocabulary_size - len(known))]
    settings = {name: getattr(old, name) for name in old.settings}
    wrong = type(old)(BertTokenizer(tokens), **settings)
    with pytest.raises(ValueError, match="the vocabulary has .* rows"):
        model.preprocessor = wrong
    config = model.get_config() | {"backbone": model.backbone, "preprocessor": wrong}
    with pytest.raises(ValueError, match="the vocabulary has .* rows"):
        type(model)(**config)
    assert model.preprocessor is old
    old.tokenizer.set_vocabulary(tokens)
    with pytest.raises(ValueError, match="the vocabulary has .* rows"):
        ask(kind, model)
    old.tokenizer.set_vocabulary(known)
    old.sequence_length = model.backbone.max_sequence_length + 1
    with pytest.raises(ValueError, match="exceeds the backbone's .* positions"):
        ask(kind, model)
    with pytest.raises(ValueError, match="exceeds the backbone's .* positions"):
        model.export("/nonexistent/folder")
