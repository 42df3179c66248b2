"""Prepares a corpus from raw text: shards of tokenized documents in random order."""

import numbers
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from keras_bert.arguments import check_choice, check_count
from keras_bert.data.beam_runs import import_beam, pipeline_options, progress
from keras_bert.data.corpus_plan import (
    ERROR,
    FORMATS,
    PLAN_FILE,
    WORK_FOLDER,
    CorpusPlan,
    make_plan,
)
from keras_bert.data.documents import MAX_DOCUMENT_TOKENS
from keras_bert.data.records import (
    INDEX_FILE,
    VOCABULARY_FILE,
    CorpusIndex,
    read_index,
    vocabulary_content,
)
from keras_bert.data.sorted_runs import ENTRY
from keras_bert.data.whole_files import claim_folder, delete, read_whole, write_whole
from keras_bert.text.tokenizer import BertTokenizer

# Share of [UNK], and mean number of tokens in a sentence, above which there is a warning. Text in
# the vocabulary's language has a few [UNK] in a thousand, and English sentences 20 to 35 tokens.
MANY_UNKNOWN = 0.01
LONG_SENTENCE = 50
OVERWRITE = "choose another folder, or pass overwrite=True to delete what is there"


def prepare_corpus(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    tokenizer: BertTokenizer,
    shards: int = 8,
    seed: int = 0,
    *,
    format: str = "sentences",
    language: str = "en",
    data_dir: str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    beam_options: Sequence[str] = (),
    verbose: bool = True,
) -> CorpusIndex:
    """Tokenizes raw text and writes it as a corpus that `pretraining_dataset` streams.

    Documents are shuffled over all shards, in an order that is a function of the seed, the index of
    the file in the sorted list and the position of the document in the file. Shards are bitwise
    identical for any runner and number of workers. Called again after an interruption, it resumes;
    if the corpus already exists, it only reads the index.

    Args:
        files: names or globs of UTF-8 text, plain or `.gz`, and names of TensorFlow Datasets:
            "tfds:NAME" or "tfds:NAME:SPLIT", with the feature `text`, whose lines are paragraphs.
        folder: the folder of the corpus; created if it does not exist.
        tokenizer: has [MASK] in its vocabulary, and `special_tokens_in_text=False`.
        shards: number of files to write; fewer if there are less than two documents for each.
        seed: seed of the order of documents.
        format: format of the text files: "sentences", one per line (as in google-research/bert's
            create_pretraining_data.py), or "paragraphs", one per line, which sentencex splits into
            sentences. A blank line and the end of a file end a document.
        language: language of paragraphs, ISO 639-1.
        data_dir: directory of TensorFlow Datasets; None for the library's default.
        overwrite: whether to delete a corpus with other settings, complete or not, in `folder`.
        workers: threads on this machine; None for one per core, up to 4. Other runners have their
            own options.
        beam_options: for Apache Beam, such as `["--runner=DataflowRunner", "--project=..."]`.
        verbose: whether to show progress on the standard error.

    Returns:
        The index. Its `left_out` counts the lines and documents without tokens, the documents that
        were split because they had more than about a million tokens, and the tokens that are [UNK]
        because the vocabulary lacks a character of the word. A warning says so if they are many.

    Raises:
        FileNotFoundError: if a file does not exist, or a glob matches nothing.
        FileExistsError: if `folder` contains other files, or a corpus with other text or settings.
        ValueError: if the text is not UTF-8 or has no documents, a file is named twice, or an
            argument is invalid.
        ImportError: if Apache Beam, sentencex or TensorFlow Datasets are needed and missing.
    """
    shards = check_count("shards", shards)
    _check_arguments(tokenizer, seed, format)
    beam = import_beam("prepare_corpus", "corpus")
    from keras_bert.data.corpus_pipeline import build_pipeline, read_errors

    folder = os.fspath(folder)
    folder = folder if "://" in folder else os.path.abspath(folder)
    plan = make_plan(files, tokenizer, shards, int(seed), format, language, data_dir)
    plan = _claim(folder, plan, tokenizer, overwrite)
    if plan is None:
        return read_index(folder)
    options = pipeline_options(beam, workers, beam_options)
    work = os.path.join(folder, WORK_FOLDER)
    with progress(lambda: _state(work, plan), verbose), beam.Pipeline(options=options) as pipeline:
        build_pipeline(pipeline, folder, len(plan.blocks))
    if errors := read_errors(work):
        raise ValueError(errors[0])
    index = read_index(folder)
    delete(work)
    _warn(index, shards)
    return index


def _check_arguments(tokenizer: Any, seed: Any, format: Any) -> None:
    if not isinstance(tokenizer, BertTokenizer):
        raise TypeError(f"tokenizer of type {type(tokenizer).__name__}: expected a BertTokenizer")
    if tokenizer.special_tokens_in_text:
        raise ValueError(
            "special_tokens_in_text=True: expected a tokenizer with False for a corpus, where "
            "[MASK] in the text is ordinary text"
        )
    if tokenizer.mask_token not in tokenizer.special_tokens:
        raise ValueError(f"the vocabulary has no {tokenizer.mask_token}, which pre-training needs")
    if not isinstance(seed, numbers.Integral) or not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed={seed!r}: expected a 64-bit integer")
    check_choice("format", format, FORMATS)


def _claim(
    folder: str, plan: CorpusPlan, tokenizer: BertTokenizer, overwrite: bool
) -> CorpusPlan | None:
    """The plan of the folder, written if it is new; None if the corpus there is complete."""
    import tensorflow as tf

    ours = (INDEX_FILE, VOCABULARY_FILE, WORK_FOLDER, "shard-*-of-*.tfrecord")
    # The index first: without one, the folder is not a corpus.
    found = claim_folder(folder, ours, "part of a corpus", overwrite, INDEX_FILE)
    vocabulary = vocabulary_content(tokenizer.get_vocabulary())
    vocabulary_file = os.path.join(folder, VOCABULARY_FILE)
    work = os.path.join(folder, WORK_FOLDER)
    plan_file = os.path.join(work, PLAN_FILE)
    if INDEX_FILE in found:
        index = asdict(read_index(folder))
        _compare(folder, plan.corpus, {name: index[name] for name in plan.corpus})
        delete(work)
        return None
    if tf.io.gfile.exists(plan_file):
        old = CorpusPlan.from_content(read_whole(plan_file))
        _compare(folder, plan.corpus, old.corpus)
        if (old.paths, old.times) != (plan.paths, plan.times):
            raise FileExistsError(
                f"{folder} has a partial corpus whose files were changed or moved since; "
                f"{OVERWRITE}"
            )
        for name in tf.io.gfile.glob(os.path.join(work, f"*{ERROR}")):
            tf.io.gfile.remove(name)
        return old
    problem = None
    if any(name.startswith("shard-") for name in found):
        problem = f"{folder} has shards of an unknown corpus"
    elif VOCABULARY_FILE in found and read_whole(vocabulary_file) != vocabulary:
        problem = f"{vocabulary_file} is another vocabulary"
    if problem:
        raise FileExistsError(f"{problem}; {OVERWRITE}")
    tf.io.gfile.makedirs(work)
    write_whole(vocabulary_file, vocabulary)
    write_whole(plan_file, plan.content())
    return plan


def _compare(folder: str, asked: dict[str, Any], found: dict[str, Any]) -> None:
    """Raises a FileExistsError unless a corpus has the requested settings."""
    for name in sorted({*asked, *found}):
        value, there = asked.get(name), found.get(name)
        if isinstance(value, dict) and isinstance(there, dict):
            _compare(folder, value, there)
        elif value != there:
            raise FileExistsError(
                f"{folder} has a corpus, or part of one, with {name} {there!r:.300}, not "
                f"{value!r:.300}; {OVERWRITE}"
            )


def _warn(index: CorpusIndex, shards: int) -> None:
    said = []
    if index.documents == 1:
        said.append(
            "the corpus is one document, but next sentence prediction needs two; is there a blank "
            "line between documents?"
        )
    elif len(index.shards) < shards:
        said.append(
            f"wrote {len(index.shards)} shards, not {shards}, because {index.documents} documents "
            "are less than two for each"
        )
    if cut := index.left_out.get("documents_cut"):
        said.append(
            f"{cut} documents have more than {MAX_DOCUMENT_TOKENS} tokens and were split; is there "
            "a blank line between documents?"
        )
    unknown = index.left_out.get("unknown_tokens", 0)
    if unknown > MANY_UNKNOWN * index.tokens:
        said.append(
            f"{unknown:,} of {index.tokens:,} tokens are [UNK], because the vocabulary lacks "
            "characters of this text; one made with a larger alphabet_size keeps more of them"
        )
    length = index.tokens / index.sentences
    if index.source["format"] == "sentences" and length > LONG_SENTENCE:
        said.append(
            f"a line has {length:.0f} tokens on average, more than sentences have; if they are "
            "paragraphs, pass format='paragraphs', or next sentences will be missing"
        )
    for warning in said:
        warnings.warn(f"{index.folder}: {warning}", stacklevel=3)


def _state(work: str, plan: CorpusPlan) -> str:
    import tensorflow as tf

    names = tf.io.gfile.listdir(work)
    sizes = [sum(piece.megabytes for piece in block) for block in plan.blocks]
    done = [size for block, size in enumerate(sizes) if f"block-{block:05d}.json" in names]
    entries = [os.path.join(work, name) for name in names if name.endswith(".entries")]
    documents = sum(tf.io.gfile.stat(path).length for path in entries) // ENTRY.itemsize
    shards = sum(name.startswith("shard-") and name.endswith(".json") for name in names)
    return (
        f"{sum(done):,.0f} of {sum(sizes):,.0f} MB read in {len(done)} of {len(sizes)} blocks, "
        f"{documents:,} documents; {shards} shards written"
    )
