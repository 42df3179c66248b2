import gzip
import logging
from collections import Counter

import pytest

from keras_bert.data.glue import TASKS, read, read_file, read_tfds

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
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        '4\t5\t6\tWho "is it?\tWho?\t1\n7\t8\t9\tWhy?\tWhen?\t0\n',
        (['Who "is it?', "Why?"], ["Who?", "When?"]),
        [1, 0],
    ),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        '0\tnews\tf\t2012\t1\tnone\tnone\t"A cat sat.\tA cat.\t3.750\n'
        "1\tnews\tf\t2012\t1\tnone\tnone\tA cat sat.\tA dog.\t0\n",
        (['"A cat sat.', "A cat sat."], ["A cat.", "A dog."]),
        [3.75, 0.0],
    ),
    "mnli": (
        "index\tgenre\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n"
        "0\tfiction\tA cat sat.\tA cat.\tneutral\tentailment\tentailment\n"
        "1\tfiction\tIt rose.\tIt fell.\tneutral\tcontradiction\tcontradiction\n"
        "2\tfiction\tIt rose.\tA dog.\tcontradiction\tneutral\tneutral\n",
        (["A cat sat.", "It rose.", "It rose."], ["A cat.", "It fell.", "A dog."]),
        [0, 2, 1],
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n0\tWho sat?\tA cat sat.\tentailment\n"
        "1\tWho sat?\tIt rose.\tnot_entailment\n",
        (["Who sat?", "Who sat?"], ["A cat sat.", "It rose."]),
        [0, 1],
    ),
    "wnli": (
        "index\tsentence1\tsentence2\tlabel\n0\tIt has a hole.\tA carrot has.\t1\n"
        "1\tIt has a hole.\tA pin has.\t0\n",
        (["It has a hole.", "It has a hole."], ["A carrot has.", "A pin has."]),
        [1, 0],
    ),
}
TEST_FILES = {  # task: content of its test file in the archive, which has a header and no labels
    "sst2": "index\tsentence\n0\tdull \n",
    "cola": "index\tsentence\n0\tdull \n",
    "mrpc": "\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\ta\tb\n",
    "rte": "index\tsentence1\tsentence2\n0\ta\tb\n",
    "qqp": "id\tquestion1\tquestion2\n0\ta\tb\n",
    "stsb": "index\tgenre\tsource1\tsource2\tsentence1\tsentence2\n0\tnews\tx\ty\ta\tb\n",
    "mnli": "index\tgenre\tsentence1\tsentence2\n0\tfiction\ta\tb\n",
    "qnli": "index\tquestion\tsentence\n0\ta\tb\n",
    "wnli": "index\tsentence1\tsentence2\n0\ta\tb\n",
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
    ("wnli", "train"): {0: 323, 1: 312},
    ("wnli", "dev"): {0: 40, 1: 31},
    ("qnli", "dev"): {0: 2_702, 1: 2_761},
    # Slices and other files in the layout of a task.
    ("qnli", "train_slice"): {0: 4_523, 1: 4_476},
    ("qnli", "dev_slice"): {0: 504, 1: 496},
    ("qqp", "train_slice"): {0: 5_747, 1: 3_252},
    ("qqp", "dev_slice"): {0: 623, 1: 377},
    ("qqp", "train_official_columns_small"): {0: 160, 1: 160},
    ("mnli", "train_slice"): {0: 3_061, 1: 2_980, 2: 2_958},
    ("mnli", "dev_slice"): {0: 347, 1: 333, 2: 320},
    ("mnli", "train_official_columns_small"): {0: 160, 1: 160, 2: 160},
    ("mnli", "dev_matched_1000_tokenized"): {0: 373, 1: 311, 2: 316},
    ("mnli", "dev_mismatched_1000_tokenized"): {0: 346, 1: 319, 2: 335},
    ("mrpc", "msr_paraphrase_test"): {0: 578, 1: 1_147},
}


def put(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8")
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def test_table_is_consistent():
    from keras_bert.metrics.classification import METRICS

    assert set(TASKS) == set(FILES) == set(TEST_FILES) and len(TASKS) == 9
    for name, task in TASKS.items():
        assert name == task.name
        assert task.headline in task.metric_names and set(task.metric_names) <= set(METRICS)
        assert len(task.label_names) == len(task.label_values)
        assert bool(task.label_names) != task.regression
        assert set(task.files) == set(task.tfds_splits) >= {"train", "dev", "test"}


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("task", TASKS)
def test_reads_from_the_task_folder_and_from_its_parent(tmp_path, task, ending):
    content, texts, labels = FILES[task]
    folder = tmp_path / TASKS[task].folder
    put(folder, TASKS[task].files["dev"] + ending, content)
    for data_dir in (tmp_path, folder):
        examples = read(task, data_dir, "dev")
        assert examples.texts == texts and examples.labels == labels
        assert len(examples.lines) == len(labels)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("task", TASKS)
def test_test_files_have_a_header_and_no_labels(tmp_path, task, ending):
    put(tmp_path, TASKS[task].files["test"] + ending, TEST_FILES[task])
    examples = read(task, tmp_path, "test")
    pair = len(TASKS[task].text_columns) == 2
    assert examples == ((["a"], ["b"]) if pair else ["dull "], None, [2])
    put(tmp_path, TASKS[task].files["dev"], TEST_FILES[task])
    with pytest.raises(ValueError, match=f"GLUE task '{task}' has "):
        read(task, tmp_path, "dev")


def test_labels_of_a_test_file_are_not_lost(tmp_path):
    put(tmp_path, "test.tsv", FILES["rte"][0])
    assert read("rte", tmp_path, "test").labels == FILES["rte"][2]


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz", ".txt"])
def test_splits_by_the_name_of_the_file(tmp_path, ending):
    put(tmp_path / "RTE", "dev_slice" + ending, FILES["rte"][0])
    expected = read("rte", tmp_path, "dev_slice")
    assert expected.labels == FILES["rte"][2]
    assert read_file("rte", tmp_path / "RTE" / f"dev_slice{ending}") == expected


def test_matched_and_mismatched(tmp_path):
    content = FILES["mnli"][0]
    put(tmp_path, "dev_matched.tsv", content)
    put(tmp_path, "dev_mismatched.tsv", content.replace("A cat.", "A mat."))
    assert read("mnli", tmp_path, "dev") == read("mnli", tmp_path, "dev_matched")
    assert read("mnli", tmp_path, "dev_mismatched").texts[1][0] == "A mat."


def test_mnli_without_a_majority_is_left_out_and_counted(tmp_path, caplog):
    rows = "8\tfiction\ta\tb\tneutral\tentailment\t-\n"
    put(tmp_path, "dev_matched.tsv", FILES["mnli"][0] + rows * 7)
    with caplog.at_level(logging.WARNING, logger="keras_bert"):
        assert read("mnli", tmp_path, "dev").labels == FILES["mnli"][2]
    (record,) = caplog.records
    assert (
        "7 rows skipped, with a label of ['-']: lines 5, 6, 7, 8, 9 and 2 more"
        in record.getMessage()
    )
    put(tmp_path, "dev.tsv", FILES["rte"][0] + "2\ta\tb\t-\n")
    with pytest.raises(ValueError, match="line 4: label '-'"):  # of MNLI alone
        read("rte", tmp_path, "dev")


def test_broken_lines_of_qqp_are_left_out_and_counted(tmp_path, caplog):
    broken = '1\t2\t3\tWas it "\n"\tWas it real?\t0\n1\t2\t3\ta\tb\tc\t1\n'
    put(tmp_path, "train.tsv", FILES["qqp"][0] + broken + "1\t2\t3\ta\tb\t1\n")
    with caplog.at_level(logging.WARNING, logger="keras_bert"):
        examples = read("qqp", tmp_path, "train")
    assert examples.labels == [1, 0, 1] and examples.lines == [2, 3, 7]
    (record,) = caplog.records
    assert "3 rows skipped, with more or fewer columns" in record.getMessage()
    assert "lines 4, 5, 6" in record.getMessage()
    put(tmp_path, "dev.tsv", FILES["rte"][0] + "2\ta\tb\n")
    with pytest.raises(ValueError, match="line 4: 3 columns"):  # of QQP alone
        read("rte", tmp_path, "dev")


@pytest.mark.parametrize("score", ["5.1", "-0.5", "nan", "", "high"])
def test_scores_outside_their_range(tmp_path, score):
    row = f"2\tnews\tf\t2012\t1\tnone\tnone\ta\tb\t{score}\n"
    put(tmp_path, "dev.tsv", FILES["stsb"][0] + row)
    with pytest.raises(ValueError, match=f"dev.tsv, line 4: label '?{score}"):
        read("stsb", tmp_path, "dev")


MSRP = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(
    f"{n % 2}\t1{n}\t2{n}\tfirst {n}\tsecond {n}\n" for n in range(5)
)


def test_mrpc_from_the_original_files(tmp_path):
    folder = tmp_path / "MRPC"
    put(folder, "msr_paraphrase_train.txt", MSRP)
    with pytest.raises(FileNotFoundError, match="msr_paraphrase_train.txt and dev_ids.tsv"):
        read("mrpc", tmp_path, "train")
    put(folder, "dev_ids.tsv", "13\t23\n10\t20\n")
    train, dev = read("mrpc", tmp_path, "train"), read("mrpc", folder, "dev")
    assert dev == ((["first 0", "first 3"], ["second 0", "second 3"]), [0, 1], [2, 5])
    assert train.labels == [1, 0, 0] and train.lines == [3, 4, 6]
    put(folder, "dev_ids.tsv", "13\t23\n10\t99\n")
    with pytest.raises(ValueError, match=r"dev_ids.tsv, line 2: no pair of ids \('10', '99'\) in"):
        read("mrpc", tmp_path, "dev")


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
    with pytest.raises(ValueError, match=r"line 4: label '2' .* expected one of \['0', '1'\]"):
        read("sst2", tmp_path, "dev")


def test_folder_of_another_task(tmp_path):
    put(tmp_path, "dev.tsv", FILES["rte"][0])
    with pytest.raises(ValueError, match="GLUE task 'mrpc' has a header line with .*'Quality'"):
        read("mrpc", tmp_path, "dev")


def test_unknown_names_and_missing_files(tmp_path):
    for call in (read, read_tfds):
        with pytest.raises(ValueError, match=r"GLUE task 'SST-2': expected one of \['sst2'"):
            call("SST-2", data_dir=tmp_path, split="dev")
    with pytest.raises(ValueError, match=r"split of rte 'valid': expected one of \['train'"):
        read_tfds("rte", "valid")
    with pytest.raises(FileNotFoundError, match=r"No valid file .* own splits are \['train'") as at:
        read("rte", tmp_path, "valid")
    assert str(tmp_path / "RTE" / "valid.tsv.gz") in str(at.value)
    with pytest.raises(FileNotFoundError):
        read_file("rte", tmp_path / "dev.tsv")
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


@pytest.mark.parametrize(("split", "count"), [("train", 5_749), ("dev", 1_500)])
def test_scores_of_the_archive(shared_dir, split, count):
    examples = read("stsb", shared_dir / "data" / "glue", split)
    assert len(examples.labels) == count == len(examples.texts[0]) == len(examples.texts[1])
    assert min(examples.labels) == 0.0 and max(examples.labels) == 5.0
    first = {"train": "A plane is taking off.", "dev": "A man with a hard hat is dancing."}
    assert examples.texts[0][0] == first[split] and examples.labels[0] == 5.0


@pytest.mark.one_quick
@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize("task", TASKS)
def test_through_tensorflow_datasets(task, split):
    tfds = pytest.importorskip("tensorflow_datasets")
    with tfds.testing.mock_data(num_examples=7):  # random text in the shape of glue/NAME, offline
        examples = read_tfds(task, split)
    pair = examples.texts if isinstance(examples.texts, tuple) else (examples.texts,)
    assert len(pair) == len(TASKS[task].text_columns)
    assert all(len(texts) == 7 and isinstance(texts[0], str) for texts in pair)
    if split == "test":
        assert examples.labels is None
    elif TASKS[task].regression:
        assert len(examples.labels) == 7 and all(isinstance(y, float) for y in examples.labels)
    else:
        classes = set(range(len(TASKS[task].label_names)))
        assert len(examples.labels) == 7 and set(examples.labels) <= classes
    if len(pair) == 2:
        assert pair[0] != pair[1]
