"""Writes a task's examples as JSON lines, so that a peer reads the very rows that a recipe does.

The first line says what they are: {"kind", "labels"}. Each further line is an example: `texts` and
`label`; `words` and `tags`; `context`, `choices` and `label`; or `id`, `question`, `context` and
`answers` of SQuAD.
Run: python tools/peers/examples.py --kind glue --name mrpc --path GLUE --split train -o mrpc.jsonl
"""

import argparse
import json
from pathlib import Path


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    kinds = ("glue", "table", "relations", "tags", "choices", "spans")
    parser.add_argument("--kind", required=True, choices=kinds)
    parser.add_argument("--path", required=True, help="file, or GLUE folder")
    parser.add_argument("--name", help="GLUE task")
    parser.add_argument("--split", default="train", help="of a GLUE task, or with --held_out")
    parser.add_argument("--held_out", type=float, help="share of SQuAD's articles in split dev")
    parser.add_argument("--text_column", nargs="+")
    parser.add_argument("--label_column")
    parser.add_argument("--labels", nargs="+", help="label names, in the order of their ids")
    parser.add_argument("--scheme", default="iob2", choices=("iob1", "iob2"))
    parser.add_argument("--first", type=int, default=0, help="number of the first example")
    parser.add_argument("--last", type=int, help="number after the last example")
    parser.add_argument("-o", "--output", required=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

from keras_bert import data
from keras_bert.data import glue
from keras_bert.data.relations import RELATIONS


def classes(texts, labels, names):
    rows = zip(*texts, strict=True) if isinstance(texts, tuple) else ([text] for text in texts)
    lines = [{"texts": list(row), "label": y} for row, y in zip(rows, labels, strict=True)]
    return {"kind": "classes", "labels": names}, lines


def read(args):
    """Gives (header, examples)."""
    if args.kind == "glue":
        task = glue.TASKS[args.name]
        found = glue.read(args.name, args.path, args.split)
        return classes(found.texts, found.labels, list(task.label_names))
    if args.kind == "table":
        names = args.labels
        found = data.read_table(args.path, args.text_column, args.label_column, label_names=names)
        return classes(found.texts, found.labels, names)
    if args.kind == "relations":
        found = data.read_relations(args.path)
        texts = []
        for text in found.marked_texts:  # as R-BERT marks them (Wu and He 2019)
            for mark, sign in (("e1", "$"), ("e2", "#")):
                text = text.replace(f"<{mark}>", f"{sign} ").replace(f"</{mark}>", f" {sign}")
            texts.append(text)
        names = list(RELATIONS)
        return classes(texts, [names.index(label) for label in found.labels], names)
    if args.kind == "tags":
        found = data.read_tagged(args.path, scheme=args.scheme)
        lines = [{"words": w, "tags": t} for w, t in zip(found.words, found.tags, strict=True)]
        return {"kind": "tags", "labels": data.tag_names(found.tags)}, lines
    if args.kind == "choices":
        found = data.read_choices(args.path)
        columns = zip(found.contexts, found.choices, found.labels, strict=True)
        return {"kind": "choices"}, [
            {"context": c, "choices": o, "label": y} for c, o, y in columns
        ]
    questions = data.read_squad(args.path)
    if args.held_out is not None:
        parts = dict(
            zip(("train", "dev"), data.hold_out_articles(questions, args.held_out), strict=True)
        )
        questions = parts[args.split]
    lines = [
        {
            "id": one.id,
            "question": one.question,
            "context": one.context,
            "answers": [answer._asdict() for answer in one.answers],
        }
        for one in questions
    ]
    return {"kind": "spans"}, lines


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    header, lines = read(args)
    rows = [header, *lines[args.first : args.last]]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    Path(args.output).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
