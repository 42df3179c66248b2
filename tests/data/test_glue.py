import gzip
from collections import Counter

import pytest

from keras_bert.data.glue import TASKS, read, read_tfds

FILES = {  # task: (content as the archive writes it, texts, labels)
    "sst2": (
        "sentence\tlabel\na fine film \t1\ndull \t0\n",
        ["a fine film ", "dull "],
        [1, 0],
    ),
    "cola": (
        "gj04\t1\t\tThe cat sat.\ncj99\t0\t*\tCat the sat.\n",
        ["The cat sat.", "Cat the sat."],
        [1, 0],
    ),
    "mrpc": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        '1\t11\t12\tHe said " no .\tNo , he said .\n'
        "0\t13\t14\tIt rose .\tIt fell .\n",
        (['He said " no .', "It rose ."], ["No , he said .", "It fell ."]),
        [1, 0],
    ),
    "rte": (
        "index\tsentence1\tsentence2\tlabel\n0\tA cat sat.\tA cat.\tentailment\n"
        "1\tA cat sat.\tA dog.\tnot_entailment\n",
        (["A cat sat.", "A cat sat."], ["A cat.", "A dog."]),
        [0, 1],
    ),
}
ROWS = {  # of the archive's files
    ("sst2", "train"): {0: 29_780, 1: 37_569},
    ("sst2", "dev"): {0: 428, 1: 444},
    ("cola", "train"): {0: 2_528, 1: 6_023},
    ("cola", "dev"): {0: 322, 1: 721},
    ("mrpc", "train"): {0: 1_194, 1: 2_474},
    ("mrpc", "dev"): {0: 129, 1: 279},
    ("rte", "train"): {0: 1_249, 1: 1_241},
    ("rte", "dev"): {0: 146, 1: 131},
}


def put(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8")
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def test_table_is_consistent():
    from keras_bert.metrics.classification import METRICS

    for name, task in TASKS.items():
        assert name == task.name
        assert task.headline in task.metric_names and set(task.metric_names) <= set(METRICS)
        assert len(task.label_names) == len(task.label_values)
        assert set(task.files) == set(task.tfds_splits)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("task", TASKS)
def test_reads_from_the_task_folder_and_from_its_parent(tmp_path, task, ending):
    content, texts, labels = FILES[task]
    folder = tmp_path / TASKS[task].folder
    put(folder, "dev.tsv" + ending, content)
    for data_dir in (tmp_path, folder):
        examples = read(task, data_dir, "dev")
        assert examples.texts == texts and examples.labels == labels


def test_cola_with_a_header_and_five_columns(tmp_path):
    put(tmp_path, "train.tsv", "id\tsource\tlabel\tmark\tsentence\n0\tgj04\t1\t\tThe cat sat.\n")
    with pytest.raises(ValueError) as caught:
        read("cola", tmp_path, "train")
    message = str(caught.value)
    assert f"{tmp_path / 'train.tsv'}, line 1: 5 columns" in message
    assert "no header line and the columns ['source', 'label', 'mark', 'sentence']" in message


@pytest.mark.parametrize("header", ["source\tlabel\tmark\tsentence", "src\tacceptable\t\ttext"])
def test_cola_with_a_header_and_four_columns(tmp_path, header):
    put(tmp_path, "train.tsv", header + "\ngj04\t1\t\tThe cat sat.\n")
    with pytest.raises(ValueError, match="line 1: .*header line"):
        read("cola", tmp_path, "train")


def test_sst2_without_its_header(tmp_path):
    put(tmp_path, "train.tsv", "a fine film \t1\n")
    with pytest.raises(ValueError, match=r"line 1: no column 'sentence'; .*\['a fine film ', "):
        read("sst2", tmp_path, "train")


def test_label_outside_the_task(tmp_path):
    put(tmp_path, "dev.tsv", FILES["sst2"][0] + "so so \t2\n")
    with pytest.raises(ValueError, match=r"line 4: label '2' .* not one of \['0', '1'\]"):
        read("sst2", tmp_path, "dev")


def test_folder_of_another_task(tmp_path):
    put(tmp_path, "dev.tsv", FILES["rte"][0])
    with pytest.raises(ValueError, match="GLUE task 'mrpc' has a header line with .*'Quality'"):
        read("mrpc", tmp_path, "dev")


def test_unknown_names_and_missing_files(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown GLUE task: 'SST-2'. Known are \['sst2'"):
        read("SST-2", tmp_path, "dev")
    with pytest.raises(ValueError, match=r"Unknown split of rte: 'test'. Known are \['train'"):
        read("rte", tmp_path, "test")
    with pytest.raises(FileNotFoundError) as caught:
        read("rte", tmp_path, "dev")
    assert str(tmp_path / "RTE" / "dev.tsv.gz") in str(caught.value)


@pytest.mark.parametrize(("task", "split"), ROWS)
def test_row_counts_of_the_archive(shared_dir, task, split):
    examples = read(task, shared_dir / "data" / "glue", split)
    assert Counter(examples.labels) == ROWS[task, split]
    pair = examples.texts if isinstance(examples.texts, tuple) else (examples.texts,)
    assert len(pair) == len(TASKS[task].text_columns)
    for texts in pair:
        assert len(texts) == len(examples.labels) and all(text.strip() for text in texts)


@pytest.mark.parametrize("task", TASKS)
def test_through_tensorflow_datasets(task):
    tfds = pytest.importorskip("tensorflow_datasets")
    with tfds.testing.mock_data(num_examples=7):  # random text in the shape of glue/NAME, offline
        examples = read_tfds(task, "dev")
    pair = examples.texts if isinstance(examples.texts, tuple) else (examples.texts,)
    assert len(pair) == len(TASKS[task].text_columns)
    assert all(len(texts) == 7 and isinstance(texts[0], str) for texts in pair)
    assert len(examples.labels) == 7 and set(examples.labels) <= {0, 1}
    if len(pair) == 2:
        assert pair[0] != pair[1]
