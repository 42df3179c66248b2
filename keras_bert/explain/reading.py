"""How a task reads an example: a row of the network, and where in its texts each token stands."""

from dataclasses import dataclass, replace

import keras
import numpy as np

from keras_bert.data.examples import are_examples
from keras_bert.data.texts import as_strings, is_text, text_columns
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.pretrainer import BertMaskedLM
from keras_bert.tasks.question_answerer import BertQuestionAnswerer
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from keras_bert.tasks.run_rows import kept_function
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.tasks.token_classifier import BertTokenClassifier
from keras_bert.text.entities import join_words
from keras_bert.text.padding import pack
from keras_bert.text.prompts import MASK, check_has_mask, prompt_rows
from keras_bert.text.windows import cut

SPECIAL = -1  # the side, start and end of a token that stands in no text


@dataclass(frozen=True, eq=False)
class TokensRead:
    """T tokens of one or two texts, as the network reads them.

    Attributes:
        texts: the texts that were read, one or two.
        tokens: T tokens of the vocabulary, with [CLS] and [SEP].
        sides: int32 [T], the index of each token's text; -1 for special tokens and markers.
        spans: int32 [T, 2], the characters of each token in its text, start and end; -1 for
            special tokens.
    """

    texts: tuple[str, ...]
    tokens: tuple[str, ...]
    sides: np.ndarray
    spans: np.ndarray

    def _groups(self) -> list[list[int]]:
        """The indices of the pieces of each word, and of each special token, in their order."""
        groups: list[list[int]] = []
        for number, (token, side) in enumerate(zip(self.tokens, self.sides, strict=True)):
            later = side >= 0 and token.startswith("##") and len(token) > 2
            if later and groups and self.sides[groups[-1][-1]] == side:
                groups[-1].append(number)
            else:
                groups.append([number])
        return groups


@dataclass(frozen=True, eq=False)
class Reading(TokensRead):
    """One row of the network, without padding.

    Attributes:
        texts, tokens, sides, spans: as `TokensRead`.
        ids: int32 [1, T] by name, the inputs of the network; `mask_positions` and
            `entity_positions` are [1, P].
        word: of a tagger the word at each position, int32 [T], -1 for none.
    """

    ids: dict[str, np.ndarray]
    word: np.ndarray | None = None


def columns_of(task, x) -> tuple:
    """Parses examples into columns of N strings or values.

    They are given as the task's method that answers takes them, a list or a tuple of columns; or a
    single one, a string or a tuple that begins with a string.
    """
    task.check_has_preprocessor()
    if not are_examples(x):
        raise TypeError(f"texts of type {type(x).__name__}: expected texts, not ids or a dataset")
    if is_text(x):
        x = [x]
    elif isinstance(x, tuple) and x and is_text(x[0]):
        x = tuple([value] for value in x)
    if isinstance(task, BertMaskedLM):  # whose `examples` are texts to train on
        columns = text_columns(x)
    else:
        columns = task.examples(x).columns
    return tuple(map(as_strings, columns))


def read_pair(task, text: str | tuple[str, ...]) -> Reading:
    """Reads one or two texts as [CLS] first [SEP] second [SEP], whatever the task.

    For a masked language model a literal [MASK] in a single text is the special token.
    """
    task.check_has_preprocessor()
    texts = text if isinstance(text, tuple) else (text,)
    if not 1 <= len(texts) <= 2 or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"text={text!r:.80}: expected a str or a tuple of two")
    if isinstance(task, BertMaskedLM) and len(texts) == 1 and MASK in texts[0]:
        return read_prompt(task, texts[0], 0)
    preprocessor = task.preprocessor
    pieces = [_pieces(preprocessor.tokenizer, text) for text in texts]
    length = preprocessor.sequence_length
    return _packed(preprocessor, texts, pieces, length, getattr(preprocessor, "tail", 0.0))


def read_any(task, text) -> Reading:
    """Reads an example as the task does where it has a form of its own, else as `read_pair`.

    For relations that is (text, spans); for multiple choice (context, choices), of which the best
    choice is read. Of a question and its context, the window that holds the answer is read.
    """
    pair = isinstance(text, tuple) and len(text) == 2
    texts = pair and isinstance(text[1], str)
    if texts and isinstance(task, BertQuestionAnswerer):
        columns = tuple(column[0] for column in columns_of(task, text))
        best = task.answer(*columns)
        return read_example(task, columns, characters=(best.start, best.end))[0]
    if pair and not texts and isinstance(task, BertRelationClassifier | BertMultipleChoice):
        readings = read_example(task, tuple(column[0] for column in columns_of(task, text)))
        scores = [run_outputs(task, one)[0] for one in readings] if len(readings) > 1 else [0]
        return readings[int(np.argmax(scores))]
    return read_pair(task, text)


def read_example(task, columns: tuple, **options) -> list[Reading]:
    """Reads an example, given by its columns' values, as the task does.

    Options are `word`, the word of a sentence to explain, which decides on the window;
    `characters`, those of an answer, (start, end); and `mask`, the number of the [MASK]. The result
    is one row; for an embedder one for each text, for multiple choice one for each choice.
    """
    preprocessor = task.preprocessor
    if isinstance(task, BertTokenClassifier):
        return [_sentence(preprocessor, columns[0], options.get("word", 0))]
    if isinstance(task, BertQuestionAnswerer):
        return [_question(preprocessor, *columns, options.get("characters", (0, 0)))]
    if isinstance(task, BertRelationClassifier):
        return [_relation(preprocessor, *columns)]
    if isinstance(task, BertMultipleChoice):
        context, choices = columns
        return [read_pair(task, (context, choice)) for choice in choices if choice]
    if isinstance(task, BertTextEmbedder):
        prompt = task.prompts[task.default_prompt] if task.default_prompt else ""
        return [_after_prompt(read_pair(task, (prompt + text,)), prompt) for text in columns]
    if isinstance(task, BertMaskedLM):
        if len(columns) == 1:
            return [read_prompt(task, columns[0], options.get("mask", 0))]
        reading = read_pair(task, columns)
        ids = reading.ids | {"mask_positions": np.zeros([1, 1], "int32")}
        return [replace(reading, ids=ids)]
    return [read_pair(task, columns)]


def read_prompt(task, text: str, mask: int) -> Reading:
    """Reads a text with [MASK]s, which are special tokens with spans, as `BertMaskedLM.fill` does.

    A text that is too long is read around the [MASK] of number `mask`.
    """
    preprocessor = task.preprocessor
    tokenizer = preprocessor.tokenizer
    check_has_mask(tokenizer)
    parts = text.split(MASK)
    if not 0 <= mask < len(parts) - 1:
        raise ValueError(
            f"target={mask}: expected the number of a {MASK}, and there are {len(parts) - 1} in "
            f"{text!r:.80}"
        )
    place, found, masks = 0, [], []
    for part in parts:
        ids, spans = _pieces(tokenizer, part)
        masks.append(sum(map(len, (ids for ids, _ in found))) + len(ids))
        end = place + len(part)
        found.append((ids, spans + place))
        found.append((np.array([tokenizer.mask_token_id]), np.array([[end, end + len(MASK)]])))
        place = end + len(MASK)
    ids, spans = (np.concatenate(values) for values in zip(*found[:-1], strict=True))
    rows = prompt_rows([text], tokenizer, preprocessor.sequence_length)
    inside = int(rows.place[mask])  # its place among the pieces of its row
    first = masks[mask] - inside
    stretch = slice(first, first + int(rows.pieces.row_lengths()[rows.row[mask]]))
    length = preprocessor.sequence_length
    reading = _packed(preprocessor, (text,), [(ids[stretch], spans[stretch])], length)
    sides = np.where(reading.ids["token_ids"][0] == tokenizer.mask_token_id, SPECIAL, reading.sides)
    ids = reading.ids | {"mask_positions": np.array([[inside + 1]], "int32")}
    return replace(reading, ids=ids, sides=sides.astype("int32"))


def run_outputs(task, reading: Reading):
    """A task's outputs for one row: arrays [1, ...], structured as the model's output."""
    import tensorflow as tf

    names, columns = [*reading.ids], [*map(tf.constant, reading.ids.values())]

    def run(*values):
        return task(dict(zip(names, values, strict=True)), training=False)

    found = kept_function(task, ("outputs of a row", *names), run, columns)(*columns)
    return keras.tree.map_structure(np.asarray, found)


def run_layers(task, reading: Reading) -> tuple[np.ndarray, np.ndarray]:
    """Runs the encoder on a row, and keeps what is inside.

    Returns the hidden states, float32 [L + 1, T, H], beginning with those of the embeddings; and
    the attention probabilities, float32 [L, N, T, T], from query to key.
    """
    import tensorflow as tf

    names = ("token_ids", "segment_ids", "padding_mask")
    columns = [tf.constant(reading.ids[name]) for name in names]

    def run(token_ids, segment_ids, padding_mask):
        backbone = task.backbone
        x = backbone.embeddings(token_ids, segment_ids, training=False)
        mask = backbone.attention_mask(padding_mask)
        states, maps = [x], []
        for block in backbone.blocks:
            x, probabilities = block(x, mask, training=False)
            states.append(x)
            maps.append(probabilities)
        found = [tf.concat(values, axis=0) for values in (states, maps)]
        return [tf.cast(value, tf.float32) for value in found]

    states, maps = kept_function(task, ("layers",), run, columns)(*columns)
    return states.numpy(), maps.numpy()


def _pieces(tokenizer, text: str) -> tuple[np.ndarray, np.ndarray]:
    """(ids [P], spans [P, 2]) of a text's pieces."""
    ids, starts, ends = tokenizer.tokenize_with_offsets([text], unit="char")
    spans = np.stack([starts.flat_values.numpy(), ends.flat_values.numpy()], axis=1)
    return ids.flat_values.numpy(), spans


def _packed(preprocessor, texts, pieces, length: int, tail: float = 0.0) -> Reading:
    """Packs the pieces of one or two texts by the preprocessor's own rule.

    The rule is applied to numbers of pieces in place of their ids, so that each token of the row
    tells which piece it is, whatever was truncated.
    """
    import tensorflow as tf

    tokenizer = preprocessor.tokenizer
    above = tokenizer.vocabulary_size()  # numbers from here are pieces, smaller ones special ids
    counts = [len(ids) for ids, _ in pieces]
    begin = np.cumsum([above, *counts])
    numbers = [
        tf.RaggedTensor.from_row_lengths(tf.range(first, first + count, dtype=tf.int32), [count])
        for first, count in zip(begin.tolist(), counts, strict=False)
    ]
    row = pack(numbers, tokenizer, length, "full", tail)
    used = int(row["padding_mask"].numpy().sum())
    row = {name: value.numpy()[:, :used] for name, value in row.items()}
    number = row["token_ids"][0] - above
    known = np.concatenate([ids for ids, _ in pieces])
    inside = number >= 0
    place = np.where(inside, number, 0)
    ids = np.where(inside, known[place] if len(known) else 0, row["token_ids"][0])
    spans = np.concatenate([*(spans for _, spans in pieces), [[SPECIAL, SPECIAL]]])
    sides = np.repeat(np.arange(len(counts)), counts)
    sides = np.where(inside, sides[place] if len(sides) else SPECIAL, SPECIAL)
    row["token_ids"] = ids[None].astype("int32")
    return _reading(tokenizer, texts, row, sides, spans[np.where(inside, number, -1)])


def _reading(tokenizer, texts, ids, sides, spans, word=None) -> Reading:
    tokens = tuple(tokenizer.id_to_token(i) for i in ids["token_ids"][0].tolist())
    return Reading(texts, tokens, sides.astype("int32"), spans.astype("int32"), ids, word)


def _after_prompt(reading: Reading, prompt: str) -> Reading:
    """The same with spans in the text alone; pieces of the prompt become special."""
    if not prompt:
        return reading
    inside = reading.spans[:, :1] >= len(prompt)
    spans = np.where(inside, reading.spans - len(prompt), SPECIAL)
    sides = np.where(inside[:, 0], reading.sides, SPECIAL)
    text = reading.texts[0][len(prompt) :]
    return replace(reading, texts=(text,), sides=sides, spans=spans)


def _sentence(preprocessor, sentence: str | list[str], word: int) -> Reading:
    """The window of a sentence, a text or a list of words, that represents a word."""
    import tensorflow as tf

    tokenizer = preprocessor.tokenizer
    if isinstance(sentence, str):
        text, batch = sentence, tf.constant([sentence])
        _, spans = _pieces(tokenizer, text)
    else:
        text, batch = join_words(sentence), tf.ragged.constant([sentence], dtype=tf.string)
        spans, place = [], 0
        for own in sentence:
            place = text.index(own, place)
            found = _pieces(tokenizer, own)[1] + place
            # A word without pieces is one [UNK].
            spans.append(found if len(found) else np.array([[place, place + len(own)]]))
            place += len(own)
        spans = np.concatenate(spans) if spans else np.zeros([0, 2], "int32")
    rows = preprocessor.rows(batch, padding="full")
    words = rows.word.numpy()
    count = int(rows.counts[0])
    if not 0 <= word < max(count, 1):
        raise ValueError(f"target={word}: expected the index of a word, 0 to {count - 1}")
    row = int(np.argmax((words == word).any(axis=1))) if count else 0
    room = preprocessor.sequence_length - 2
    windows = cut([len(spans)], room, preprocessor.stride or (room + 1) // 2)
    first, length = int(windows.start[row]), int(windows.length[row])
    ids = {n: v.numpy()[row : row + 1, : length + 2] for n, v in rows.ids.items()}
    sides, places = np.full(length + 2, SPECIAL), np.full([length + 2, 2], SPECIAL)
    sides[1:-1], places[1:-1] = 0, spans[first : first + length]
    return _reading(tokenizer, (text,), ids, sides, places, words[row, : length + 2])


def _question(preprocessor, question: str, context: str, characters: tuple) -> Reading:
    """The window of a context that holds some characters with the most context."""
    tokenizer = preprocessor.tokenizer
    rows = preprocessor.encode([question], [context], padding="full")
    starts, ends = rows.starts.numpy(), rows.ends.numpy()
    touched = (starts >= 0) & (starts < max(characters[1], characters[0] + 1))
    touched &= ends > characters[0]
    whole = touched.sum(axis=1) == touched.sum(axis=1).max()
    row = int(np.argmax(whole * (1 + (touched & rows.most_context.numpy()).sum(axis=1))))
    used = int(rows.padding_mask.numpy()[row].sum())
    begin = int(rows.context_begin[row])  # of the window; the question ends two before
    sides = np.where(starts[row, :used] >= 0, 1, SPECIAL)
    spans = np.stack([starts[row, :used], ends[row, :used]], axis=1)
    sides[1 : begin - 1] = 0
    spans[1 : begin - 1] = _pieces(tokenizer, question)[1][: begin - 2]
    ids = {name: value.numpy()[row : row + 1, :used] for name, value in rows.ids().items()}
    return _reading(tokenizer, (question, context), ids, sides, spans)


def _relation(preprocessor, text: str, spans) -> Reading:
    """A sentence with markers around two entities; see `BertRelationPreprocessor` for the cuts."""
    tokenizer = preprocessor.tokenizer
    rows, fits = preprocessor.encode([text], [spans])
    if not bool(fits[0]):
        raise ValueError(
            f"the entities of {text!r:.80} do not fit into sequence_length="
            f"{preprocessor.sequence_length} tokens"
        )
    used = int(rows["padding_mask"].numpy().sum())
    ids = {n: v.numpy() for n, v in rows.items()}
    ids = {n: v if n == "entity_positions" else v[:, :used] for n, v in ids.items()}
    cuts = [0, *np.sort(np.asarray(spans), axis=0).ravel().tolist(), len(text)]
    parts = [_pieces(tokenizer, text[a:b])[1] + a for a, b in zip(cuts, cuts[1:], strict=False)]
    before, first, between, second, after = parts
    opens = np.sort(ids["entity_positions"][0]).tolist()
    closes = [opens[0] + len(first) + 1, opens[1] + len(second) + 1]
    kept = opens[1] - closes[0] - 1  # of the part between, which loses pieces in its middle
    places = np.full([used, 2], SPECIAL)
    places[1 : opens[0]] = before[len(before) - opens[0] + 1 :]
    places[opens[0] + 1 : closes[0]] = first
    head = kept - kept // 2
    places[closes[0] + 1 : opens[1]] = np.concatenate(
        [between[:head], between[len(between) - kept // 2 :]]
    )
    places[opens[1] + 1 : closes[1]] = second
    places[closes[1] + 1 : used - 1] = after[: used - 2 - closes[1]]
    return _reading(tokenizer, (text,), ids, np.minimum(places[:, 0], 0), places)
