"""The source of batches of a table, for any task: its rows are made, and packed, piece by piece."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.packed_rows import pack_lengths
from keras_bert.data.ragged import host_only, is_ragged, joined, joined_rows
from keras_bert.data.table_rows import NUMERIC, Cell, Index, Stop, Table, TableReader
from keras_bert.data.table_source import Packing, TableSource
from keras_bert.tasks.batch_sources import class_weigher
from keras_bert.tasks.fitting import text_settings
from keras_bert.tasks.packed_source import (
    LEAST_SAVING,
    MOST_OFF,
    PLACES,
    SHORTEST_ROW,
    may_pack,
    texts_in_a_row,
)
from keras_bert.tasks.targets import balanced_weights, label_counts
from keras_bert.training.task_metrics import LABELS

SAMPLE = 8000  # rows that settings are chosen by
EIGHTS = 32  # from so many packed rows on, a batch has a multiple of 8, whatever the replicas
THREADS = 8


def table_source(
    task,
    table: Table,
    batch_size,
    shuffle: bool = False,
    seed: int = 0,
    class_weight=None,
    labelled: bool = True,
    preprocess: Callable | None = None,
) -> TableSource:
    """Makes the source of a table, after one pass over it that checks and counts its rows.

    Arguments as `BertTask.fit`; texts are packed in shuffled training only. `preprocess` maps (x,
    y, sample_weight) of a batch to that of the source, without packing; by default to the inputs of
    the step.

    Raises:
        ValueError: if a row is wrong, or columns are not those of the task.
    """
    batch_size = check_batch_size(batch_size)
    if class_weight is not None and task.labels_by_token:
        raise ValueError("class_weight needs rows in memory: a table can bring weights")
    if class_weight is not None:
        task.encode_class_weight({})  # raises for tasks without classes
    rows = TableRows(task, table, labelled)
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    packs = shuffle and labelled and preprocess is None and may_pack(task)
    packing = rows.packing(batch_size) if packs else None
    index = rows.index(packing, balanced)
    if balanced:
        several = task.output_kind == LABELS
        class_weight = balanced_weights(index.sums, int(index.examples.sum()), several)
    width = task.preprocessor.sequence_length
    if packing is not None:
        texts = int(index.examples.sum())
        saved = 1 - index.size * packing.row_length / (texts * width)
        shares = task.step.replica_count * task.step.accumulation_steps
        wanted = batch_size * index.size / texts
        multiple = math.lcm(shares, 8) if wanted >= EIGHTS else shares
        size = max(1, round(wanted / multiple)) * multiple
        off = abs(size * texts / index.size / batch_size - 1)
        if task.packing is not True and (saved < LEAST_SAVING or off > MOST_OFF):
            packing, index = None, rows.index(None, False)
        else:
            batch_size = size
    weigh = class_weigher(task, class_weight, None)
    whole = task.step.needs_whole_batches
    if not labelled:  # such as devices of JAX, which share each batch evenly
        replicas = task.step.replica_count
        whole, batch_size = whole and replicas > 1, batch_size + -batch_size % replicas

    def inputs(x, y=None, sample_weight=None):
        return weigh(task.step_inputs(x, y, sample_weight))

    load, order = rows.loader(index, packing), (shuffle, seed, whole, width, packing)
    return TableSource(index, load, rows.reader.facts(), batch_size, preprocess or inputs, *order)


class TableRows:
    """Rows of the network for those of a table, whose names of labels a task may adopt."""

    def __init__(self, task, table: Table, labelled: bool):
        self._task, self._table, self._labelled = task, table, labelled
        given = table.columns
        cells = task.table_cells(given, labelled)
        if labelled:
            cells["weight"] = Cell(NUMERIC, required=False)
        self.reader = TableReader(table, cells, unread=task.column_names)
        self._cells = tuple(cells.items())
        unnamed = hasattr(task, "adopt_names") and task.labels is None
        if labelled and unnamed and task.label_kind != NUMERIC:  # numbers have no names
            self._find_names()
        self._sample = self.reader.head(SAMPLE, lambda c: len(task.check_table(c, labelled)[0]))
        self._made_at_once = False
        if next(iter(self._sample.values()), None):
            one = {name: values[:1] for name, values in self._sample.items()}
            self._made_at_once = task.makes_rows_to_check(task.check_table(one, labelled)[0])
            task.rows_of_table(one, labelled)  # traces the function before threads do

    def _find_names(self) -> None:
        """Adopts the names in the columns of labels, unless these hold ids."""
        names: set[str] = set()

        def take(columns):
            found = self._task.names_in(columns)
            if found is None:
                names.clear()
                raise Stop
            names.update(found)

        columns = [name for name in ("label", "tags", "entities") if name in self.reader.names]
        self.reader.only(columns).scan(take, "labels found in")
        if names:
            self._task.adopt_names(sorted(names))

    def packing(self, batch_size: int) -> Packing | None:
        """How texts are packed, by the lengths of a sample; None for an empty table."""
        task = self._task
        ids, _, _ = task.rows_of_table(self._sample, self._labelled)
        row_length = max(task.preprocessor.sequence_length, SHORTEST_ROW)
        shares = task.step.replica_count * task.step.accumulation_steps
        most = texts_in_a_row(_lengths(ids), row_length, batch_size // shares)
        return Packing(most + -most % PLACES, row_length)

    def index(self, packing: Packing | None, balanced: bool) -> Index:
        """Checks and counts all rows, once for the same settings.

        If `balanced`, `sums` of the pieces are the examples of each class, int [K].
        """
        task = self._task

        @host_only()
        def count(columns):
            data, _ = task.check_table(columns, self._labelled)
            if not self._made_at_once and packing is None:
                made = len(data)
            else:
                ids, *_ = task.rows_of_table(columns, self._labelled)
                made = len(_members(ids, packing)) if packing else int(ids["token_ids"].shape[0])
            if not balanced:
                return made
            several = task.output_kind == LABELS
            return [made, *label_counts(data.labels, task.num_classes, several)]

        key = (self._labelled, packing, balanced, self._made_at_once, self._cells)
        key += (type(task).__name__, *map(str, text_settings(task).values()))
        key += tuple(
            str(getattr(task, name, None)) for name in ("labels", "num_classes", "problem")
        )
        return self._table.kept(key, lambda: self.reader.index(count))

    def loader(self, index: Index, packing: Packing | None):
        """The function `load` of a `TableSource`."""
        read, labelled, rows_of = self.reader.read, self._labelled, self._task.rows_of_table
        at_once = self._made_at_once or packing is not None

        def piece(number: int, kept: dict):
            """The columns of a piece, or its rows; lanes come back to the piece they were in."""
            if kept.get("piece") != number:
                found = read(index, number, kept.setdefault("opened", {}))
                if at_once:
                    made = list(rows_of(found, labelled))
                    found = [*made, _members(made[0], packing)] if packing else made
                kept["piece"], kept["value"] = number, found
            return kept["value"]

        @host_only()
        def lane(part):
            ranges, kept = part
            return [(piece(number, kept), first, end) for number, first, end in ranges]

        @host_only()
        def load(parts, order):
            if not at_once:
                found = [one for part in parts for one in lane(part)]
                columns = {}
                for name in found[0][0]:
                    values = [v for rows, first, end in found for v in rows[name][first:end]]
                    columns[name] = [values[i] for i in order.tolist()]
                return list(rows_of(columns, labelled))
            with ThreadPoolExecutor(THREADS) as pool:
                found = [one for made in pool.map(lane, parts) for one in made]
            return _packed(found, order) if packing else _gathered(found, order)

        return load


def _lengths(ids: dict) -> np.ndarray:
    mask = ids["padding_mask"]
    return np.asarray(mask.row_lengths() if is_ragged(mask) else np.sum(mask, axis=1))


def _members(ids: dict, packing: Packing) -> np.ndarray:
    """The texts of each packed row of a piece, int32 [rows, S]; the same in every pass."""
    lengths = _lengths(ids)
    order = np.random.default_rng(0).permutation(len(lengths))
    members = pack_lengths(lengths, packing.row_length, packing.slots, order=order)
    room = packing.slots - members.shape[1]
    return np.pad(members, [(0, 0), (0, room)], constant_values=-1)


def _joined(found: list) -> tuple[list, np.ndarray]:
    """([x, labels, weights] of whole pieces, the number of rows in front of each)."""
    tables = [rows for rows, _, _ in found]
    sizes = [int(table[0]["token_ids"].shape[0]) for table in tables]
    x = joined_rows([table[0] for table in tables])
    rest = [
        None if tables[0][i] is None else joined([table[i] for table in tables]) for i in (1, 2)
    ]
    return [x, *rest], np.cumsum([0, *sizes[:-1]])


def _gathered(found: list, order: np.ndarray) -> list:
    """Rows of pieces in a new order."""
    table, before = _joined(found)
    places = [n + np.arange(a, b) for n, (_, a, b) in zip(before, found, strict=True)]
    return _taken(table, np.concatenate(places)[order])


def _packed(found: list, order: np.ndarray) -> list:
    """Packed rows of pieces in a new order: [x, labels, weights] of their texts, and members."""
    table, before = _joined(found)
    members = [rows[3][a:b] for rows, a, b in found]
    members = [np.where(m < 0, -1, m + n) for m, n in zip(members, before, strict=True)]
    members = np.concatenate(members)[order]
    there = members >= 0
    table = _taken(table, members[there])
    members[there] = np.arange(there.sum())
    return [*table, members.astype("int32")]


def _taken(table: list, rows: np.ndarray) -> list:
    import tensorflow as tf

    def take(column: Any):
        return tf.gather(column, rows) if is_ragged(column) else np.asarray(column)[rows]

    x, *rest = table
    x = {name: take(column) for name, column in x.items()}
    return [x, *(None if column is None else take(column) for column in rest)]
