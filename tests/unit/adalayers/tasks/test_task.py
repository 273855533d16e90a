"""From a name, a folder or the hub to a task: names, columns, labels, splits, draws, fingerprints."""

from types import SimpleNamespace

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from adalayers.command.estimate import data_line, task_line
from adalayers.command.run import add_shared
from adalayers.results.measures import read_shared
from adalayers.storage import hub
from adalayers.storage.folder import Folder
from adalayers.storage.hub import require_hub
from adalayers.tasks.catalog import CATALOG, known_as
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.task import canonical
from tests.helpers.loading import load_task
from tests.helpers.refusing import refused

SENTENCE = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
WORD_TAGS = List(ClassLabel(names=["O", "B-PER", "I-PER"]))
TAGGED = Features({"words": List(Value("string")), "tags": WORD_TAGS})
TEXTS, CLASSES = [f"Row {i}." for i in range(40)], ["no", "yes"] * 20
NAMED = {"text_column": "text", "label_column": "label"}


@pytest.fixture(autouse=True)
def no_hub(monkeypatch, tmp_path):
    """No test reads the hub or the user's cache, and each stands in an empty folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def sentences(n, start=0, label=None, features=SENTENCE):
    rows = range(start, start + n)
    labels = [i % 2 if label is None else label for i in rows]
    return Dataset.from_dict({"text": [f"Row {i}." for i in rows], "label": labels}, features)


def tagged(n, start=0):
    words = [["Ann", f"saw{i}", "Bo", "Lee"][: 2 + i % 3] for i in range(start, start + n)]
    return Dataset.from_dict({"words": words, "tags": [[1, 0, 1, 2][: len(w)] for w in words]}, TAGGED)


def save(folder, **splits):
    """Write parquet files named as the hub names them, columns as JSON lines, bytes as they are; return the folder."""
    folder.mkdir(parents=True)
    for split, rows in splits.items():
        if isinstance(rows, bytes):
            (folder / split).write_bytes(rows)
        elif isinstance(rows, dict):
            pd.DataFrame(rows).to_json(folder / f"{split}.jsonl", orient="records", lines=True)
        else:
            rows.to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return str(folder)


def refuse(message, *args, **kwargs):
    # What to do, on the first line.
    assert ";" in refused(message, load_task, *args, **kwargs).splitlines()[0]


def sizes(task):
    return {role: len(split) for role, split in task.splits.items()}


def assert_equal(task, other):
    """Fingerprints are of inputs, labels and their names."""
    assert task.fingerprint == other.fingerprint
    for split, twin in zip(task.splits.values(), other.splits.values(), strict=True):
        assert split.index.tolist() == twin.index.tolist()


# Names


def test_a_known_name_goes_before_a_folder_and_a_folder_before_an_id(tmp_path):
    for folder in ("cola", "owner/set", "My Data"):
        (tmp_path / "here" / folder).mkdir(parents=True)
    assert canonical("cola").folder is None
    assert canonical("./cola").folder == (tmp_path / "here" / "cola").resolve()
    assert canonical("./cola").source == "local:cola"
    assert canonical("owner/set").folder is not None
    assert canonical("My Data/").name == canonical("My Data").name == "my-data"


def test_unknown_names_say_what_there_is_and_where_was_looked(tmp_path):
    refuse("unknown dataset 'colla'; did you mean 'cola'", "colla")
    refuse(r"known: 20newsgroups, acceptability-demo, .*-demo\nA hub id", "wikitext")
    refuse("the path './nowhere', which is no folder", "./nowhere")
    refuse("got the path .*a file is put into one of its own, called train.py", __file__)
    refuse("out of reach", "owner/set")
    refuse(r"'stanfordnlp/imdb' from the Hugging Face hub.*--data-dir", "imdb")
    refuse("--data-dir", "cola", data_dir=tmp_path / "missing")
    refuse(rf"no folder cola or glue/cola in {tmp_path}", "cola", data_dir=tmp_path)


def test_all_spellings_are_one_dataset_and_every_entry_has_a_metric_of_its_kind():
    for name, entry in CATALOG.items():
        assert canonical(name).entry is entry, name
        assert any(entry.metric in kind.metrics_of(()) for kind in KINDS.values()), name
    for spelling, name, source in (
        ("CoLA", "cola", "nyu-mll/glue:cola"),
        ("eriktks/conll2003", "conll2003", "eriktks/conll2003"),
        ("nyu-mll/glue:mnli", "mnli", "nyu-mll/glue:mnli"),
        ("Some/Data.Set", "data.set", "Some/Data.Set"),
        ("some/set:Config One", "set-config-one", "some/set:Config One"),
    ):
        assert (canonical(spelling).name, canonical(spelling).source) == (name, source)


def test_a_folder_is_known_as_what_it_is_and_a_copy_is_of_no_revision_but_the_one_it_is_named_for(tmp_path):
    folder = save(tmp_path / "imdb", train=sentences(20), test=sentences(4))
    tasks = [load_task(name, data_dir=tmp_path) for name in ("imdb", folder)]
    assert [known_as(task.name, task.source) for task in tasks] == ["imdb", "local:imdb"]
    refuse(f"no folder imdb@main in {tmp_path}", "imdb@main", data_dir=tmp_path)
    (tmp_path / "imdb").rename(tmp_path / "imdb@main")
    assert load_task("imdb@main", data_dir=tmp_path).revision == "main"


# The hub


@pytest.fixture
def pretended_hub(monkeypatch):
    """A hub that answers; returns what it is asked for, and what it answers by id."""
    asked, answers = [], {}

    def load_dataset(path, name=None, *, revision=None):
        asked.append((path, name, revision))
        assert (hub.require_hub is require_hub) == datasets.config.HF_HUB_OFFLINE
        answer = answers.get(path, datasets.exceptions.DatasetNotFoundError(f"{path!r} doesn't exist"))
        if isinstance(answer, Exception):
            raise answer
        return DatasetDict(answer)

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "require_hub", lambda what: None)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked, answers


def test_what_the_hub_is_asked_for_and_what_it_cannot_give(pretended_hub):
    asked, answers = pretended_hub
    answers["owner/set"] = {"train": sentences(20), "validation": sentences(4)}
    answers["owner/old"] = RuntimeError("Dataset scripts are no longer supported, but found old.py")
    task = load_task("owner/set:part@abc")
    assert (task.name, task.source, task.revision) == ("set-part", "owner/set:part", "abc")
    refuse("wanted dataset 'nyu-mll/glue:cola' from the hub, got .*doesn't exist", "cola")
    refuse("owner/old@refs/convert/parquet", "owner/old")
    for name in ("conll2003", "conll2003@main"):
        refuse("from the hub", name)
    assert asked == [
        ("owner/set", "part", "abc"),
        ("nyu-mll/glue", "cola", None),
        ("owner/old", None, None),
        ("eriktks/conll2003", None, "refs/convert/parquet"),
        ("eriktks/conll2003", None, "main"),
    ]


def test_what_was_downloaded_before_is_used_offline(pretended_hub, monkeypatch):
    asked, answers = pretended_hub
    monkeypatch.setattr(hub, "require_hub", require_hub)
    answers["owner/set"] = {"train": sentences(20), "validation": sentences(4)}
    assert sizes(load_task("owner/set")) == {"train": 20, "validation": 4}
    refuse("out of reach", "owner/set@abc")  # the cache cannot tell which revision it holds
    assert asked == [("owner/set", None, None)]
    assert not datasets.config.HF_HUB_OFFLINE  # any more


# Where local copies lie, and their formats


def test_hub_and_local_copy_are_the_same_task_and_what_was_read_is_said(pretended_hub, tmp_path, monkeypatch):
    _, answers = pretended_hub
    rows = {"train": sentences(40), "validation": sentences(10, start=40), "test": sentences(9, start=90)}
    answers["nyu-mll/glue"] = {name: table.rename_column("text", "sentence") for name, table in rows.items()}
    from_hub = load_task("cola")
    monkeypatch.undo()
    folder = save(tmp_path / "data" / "cola", **answers["nyu-mll/glue"], **{"more.csv": b"text\na\n"})
    task = load_task("nyu-mll/glue:cola", data_dir=tmp_path / "data")
    assert_equal(from_hub, task)
    assert (task.metric, task.reading.path) == ("matthews", folder)
    assert task.reading.roles == {
        "train": "train-00000-of-00001.parquet",
        "validation": "a tenth of train",
        "test": "validation-00000-of-00001.parquet",
    }
    assert task.reading.unused == ("more.csv (another format)", "test-00000-of-00001.parquet (no role)")
    assert task.splits["test"].inputs == rows["validation"]["text"][:]
    assert sizes(task) == {"train": 36, "validation": 4, "test": 10}


def test_folders_of_every_format_are_the_same_task(tmp_path):
    root = tmp_path / "br[ab]"  # a pattern to those who look for files
    rows = {"train": sentences(20), "validation": sentences(6, start=20)}
    first = load_task(save(root / "mine", **rows))
    assert (first.name, first.source, first.metric) == ("mine", "local:mine", "f1_macro")
    DatasetDict(rows).save_to_disk(str(root / "disk"))
    for kind in ("csv", "json"):  # folders named like a format were once read as the format
        (root / kind).mkdir()
    for split, table in rows.items():
        table.save_to_disk(str(root / "apart" / split))
        named = pd.DataFrame({"text": table["text"], "label": [("no", "yes")[i] for i in table["label"]]})
        named.to_csv(root / "csv" / f"{split}.csv", index=False)
        named.to_json(root / "json" / f"{split}.jsonl", orient="records", lines=True)
    for folder in ("disk", "apart", "csv", "json"):
        assert_equal(load_task(str(root / folder), label_column="label"), first)
    assert sizes(load_task(str(root / "apart" / "train"))) == {"train": 18, "validation": 2}
    assert sorted(path.name for path in (root / "csv").iterdir()) == ["train.csv", "validation.csv"]
    assert not (tmp_path / "cache").exists()  # the user's cache holds no copy of what is on disk


def test_a_clone_of_several_configs_is_not_taken_for_one_of_them(tmp_path):
    """Where files are named by config the error says so; the folder of a config is read as it."""
    rows = sentences(40).to_pandas().to_csv(index=False).encode()
    save(tmp_path / "set", **{"train-de.csv": rows, "train-en.csv": rows})
    for name in ("owner/set", str(tmp_path / "set")):
        refuse(r"wanted one train split .* train-de.csv, train-en.csv", name, data_dir=tmp_path)
    refuse(rf"no folder .*set/de or de in {tmp_path}\)", "owner/set:de", data_dir=tmp_path)
    for folder in ("de", "set/de", "set-de"):  # each goes before those above
        save(tmp_path / folder, train=sentences(40))
        task = load_task("owner/Set:de", data_dir=tmp_path)
        assert (task.name, task.reading.path) == ("set-de", str(tmp_path / folder))


def test_a_folder_of_data_dir_is_found_by_its_own_name(tmp_path):
    folder = save(tmp_path / "colla", train=sentences(40))
    task = load_task("colla", data_dir=tmp_path)
    assert (task.name, task.source, task.reading.path) == ("colla", "local:colla", folder)
    refuse(r"(?s)did you mean 'cola'.*no folder collla in", "collla", data_dir=tmp_path)


def test_copies_of_known_datasets_that_lost_their_class_names_keep_the_hubs(tmp_path):
    tasks = []
    for copy, tags in {"ints": [[1, 0], [1]], "names": [["B-PER", "O"], ["B-PER"]]}.items():
        rows = {"tokens": [["Ann", "ran"], ["Bo"]], "ner_tags": tags}
        save(tmp_path / copy / "conll2003", train=rows, validation=rows, test=rows)
        tasks.append(load_task("conll2003", data_dir=tmp_path / copy))
    assert tasks[0].label_names[:3] == ("O", "B-PER", "I-PER")
    assert_equal(*tasks)


# Splits


def test_validation_from_train_is_a_stratified_tenth(tmp_path):
    labels = np.repeat([0, 1], [300, 100])
    train = Dataset.from_dict({"text": [f"Row {i}." for i in range(400)], "label": labels}, SENTENCE)
    task = load_task(save(tmp_path / "mine", train=train, test=sentences(7, start=900)))
    validation = task.splits["validation"]
    assert np.bincount(validation.labels).tolist() == [30, 10]
    assert sorted([*task.splits["train"].index, *validation.index]) == list(range(400))
    assert validation.inputs == [f"Row {i}." for i in validation.index]
    halves = train.train_test_split(test_size=0.1, seed=42, stratify_by_column="label")
    assert sorted(validation.inputs) == sorted(halves["test"]["text"])


def test_tokens_without_validation_give_up_an_unstratified_tenth(tmp_path):
    train = tagged(45)
    task = load_task(save(tmp_path / "mine", train=train))
    halves = train.train_test_split(test_size=0.1, seed=42)
    assert sorted(task.splits["validation"].inputs) == sorted(halves["test"]["words"])
    assert (len(task.splits["train"]), task.kind.name, task.metric) == (40, "token", "f1")
    tags = [tag for words in task.splits["train"].inputs for tag in [1, 0, 1, 2][: len(words)]]
    assert task.splits["train"].labels.tolist() == tags


def test_a_test_split_without_labels_is_none(tmp_path):
    rows = {"train": sentences(20), "dev": sentences(4)}
    task = load_task(save(tmp_path / "none", **rows))
    hidden, missing, empty = sentences(5, label=-1), sentences(3).remove_columns("label"), sentences(0)
    for i, test in enumerate((hidden, missing, empty)):
        other = load_task(save(tmp_path / str(i), **rows, test=test))
        assert_equal(other, task)
        assert other.reading.unused == ("test-00000-of-00001.parquet (no labels)",)


SWAPPED = Features(SENTENCE | {"label": ClassLabel(names=["yes", "no"])})
MISMATCHED = Dataset.from_dict({"words": [["a", "b"], ["c", "d"]], "tags": [[0, 1], [0]]}, TAGGED)
PARTLY = Dataset.from_dict({"text": TEXTS, "label": [-1] + [1] * 39}, SENTENCE)
BYTES = pa.array([b"Fine."] * 19 + [b"\x80"]).view(pa.string())  # unchecked, as if damaged
DAMAGED = Dataset(pa.table({"text": BYTES, "label": [0, 1] * 10})).cast_column("label", SENTENCE["label"])
WITHOUT_TEXT = Dataset.from_dict({"text": [None] * 40, "label": [0, 1] * 20}, SENTENCE)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train.xlsx": b"x"}, "wanted files of data in .*mine', got none; give a folder"),
        ({"train.csv": b"\xff\xfe"}, "wanted a header line and rows in train.csv, which is empty; fill it"),
        ({"train.parquet": b"none"}, "wanted parquet in train.parquet, which cannot be read as such"),
        ({"train": sentences(0)}, "wanted examples in train.* which is empty"),
        ({"train": sentences(20, label=-1)}, "wanted labels in column 'label' of train"),
        ({"train": sentences(20), "dev": sentences(4, label=-1)}, "wanted labels .* of dev"),
        ({"train": PARTLY}, r"wanted labels in 0\.\.1 in column 'label' .*, got 1 others"),
        ({"train": WITHOUT_TEXT}, "wanted text in column 'text' of train.*row 0"),
        ({"train": sentences(3)}, "wanted 10% of train.*of the rarest of these 1; bring"),
        ({"train": tagged(1)}, "wanted 10% of train .* got 1 example"),
        ({"train": MISMATCHED}, "wanted a tag per word in .*, got 1 for 2 words in row 1"),
        ({"train": sentences(20), "dev": sentences(4, features=SWAPPED)}, "to be train's, got others"),
        ({"train": DAMAGED}, "wanted parquet in train.*UTF8"),
        ({"train": {"text": TEXTS, "label": [[0, 1]] * 40}}, "got word ints; name another, or cast it"),
        ({"train": {"text": TEXTS, "label": [{"a": 1}] * 40}}, "got dict; name another"),
        ({"train": {"text": TEXTS, "label": ["a"] * 40}}, "at least two classes"),
        ({"train": {"text": TEXTS * 8, "label": [*map(str, range(320))]}}, "at most 200 classes"),
    ],
)
def test_data_that_cannot_be_used(tmp_path, splits, message):
    named = NAMED if isinstance(splits.get("train"), dict) else {}
    refuse(message, save(tmp_path / "mine", **splits), **named)


# Columns

WORDS, TAGS = [[f"w{i}", "is", f"v{i}"] for i in range(40)], [["B-X", "O", "O"]] * 40


@pytest.mark.parametrize(
    ("columns", "kind", "names", "found"),
    [
        ({"said": TEXTS, "mood": CLASSES}, "sequence", ("no", "yes"), ("said", "mood")),
        ({"said": TEXTS, "n": [0, 1, 2, 3] * 10}, "sequence", ("0", "1", "2", "3"), ("said", "n")),
        ({"said": TEXTS, "n": [i / 7 for i in range(40)]}, "regression", (), ("said", "n")),
        ({"text": TEXTS, "note": [None] * 40, "l": CLASSES}, "sequence", ("no", "yes"), ("text", "l")),
        ({"text": TEXTS, "note": ["a"] * 40, "l": CLASSES}, "sequence", ("no", "yes"), ("text", "l")),
        ({"id": TEXTS, "words": WORDS, "tags": TAGS}, "token", ("B-X", "O"), ("words", "tags")),
    ],
)
def test_columns_that_are_plain_are_found(tmp_path, columns, kind, names, found):
    task = load_task(save(tmp_path / "mine", train=columns))
    assert (task.kind.name, task.label_names, task.reading.columns) == (kind, names, found)


def test_columns_that_are_not_plain_are_proposed_and_can_be_named(tmp_path):
    texts = {"id": list(range(40)), "a": TEXTS, "b": [f"Or {text}" for text in TEXTS], "gold": CLASSES}
    proposed = "try --text-column a --label-column gold; .*; --text-column a,b --label-column gold"
    refuse(proposed, save(tmp_path / "texts", train=texts))
    words = {"tokens": [["Ann", "ran"]] * 30, "tags": [["B-X", "O"]] * 30}
    proposed = "; try --text-column tokens --label-column tags; --text-column tags"
    refuse(proposed, save(tmp_path / "words", train=words))
    columns = {"text": ["a", "b", "c"], "stars": [-1, 1, 5], "mood": ["up", "down", "up"]}
    folder = save(tmp_path / "few", train=columns, dev=columns)
    refuse(r"(?s)none such.*stars \(int\)", folder)
    for label, names, labels in (("mood", ("down", "up"), [1, 0, 1]), ("stars", ("-1", "1", "5"), [0, 1, 2])):
        task = load_task(folder, text_column="text", label_column=label)
        assert (task.label_names, task.splits["train"].labels.tolist()) == (names, labels)
    refuse(r"unknown column of .* 'stas'; did you mean 'stars'", folder, label_column="stas")
    refuse("none such", folder, text_column="stars", label_column="mood")


def test_named_classes_are_labels_of_the_only_text_or_of_those_that_are_named(tmp_path):
    columns = {"id": ["x", "y"], "n": [3, 4], "one": ["Hi.", "No."], "two": ["r", "s"], "label": [1, 0]}
    rows = Dataset.from_dict(columns).cast_column("label", SENTENCE["label"])
    folder = save(tmp_path / "two", train=rows, dev=rows)
    refuse("several such pairs.*--text-column two --label-column label; --text-column one,two", folder)
    assert load_task(folder, text_column="two").splits["train"].inputs == ["r", "s"]
    pairs = load_task(folder, text_column="one,two")
    assert pairs.splits["train"].inputs == [("Hi.", "r"), ("No.", "s")]
    assert (pairs.kind.name, pairs.also_in_train["validation"].tolist()) == ("sequence", [0, 1])
    refuse(r"unknown column of .* 'tow'; did you mean 'two'", folder, text_column="one,tow")
    rows = rows.remove_columns("two")
    task = load_task(save(tmp_path / "one", train=rows, dev=rows))
    assert (task.splits["train"].inputs, task.label_names) == (["Hi.", "No."], ("no", "yes"))
    assert task.splits["train"].labels.tolist() == [1, 0]


# Labels across splits: what is a class, what is no label, and what is said of it


def load_labels(folder, **splits):
    """Load a split per argument, a row per label."""
    texts = {split: [f"{split} says {i}" for i in range(len(labels))] for split, labels in splits.items()}
    columns = {split: {"text": texts[split], "label": labels} for split, labels in splits.items()}
    return load_task(save(folder, **columns), **NAMED)


@pytest.mark.parametrize("role", ["validation", "test"])
@pytest.mark.parametrize(
    ("train", "labels", "names"),
    [
        ([1, 2], [-1, 1, -1, 2], ("1", "2")),
        (["x", "y"], ["-1", "x", "-1 ", "y"], ("x", "y")),
        (["x", "y"], [None, "x", " ", "y"], ("x", "y")),
        ([1.5, 2], [None, 1.5, None, 2], ()),
    ],
)
def test_rows_without_a_label_are_left_out_and_said(tmp_path, role, train, labels, names):
    other = {"validation": "test", "test": "validation"}[role]
    task = load_labels(tmp_path / "mine", **{"train": train * 6, role: labels, other: train})
    split = task.splits[role]
    assert (task.label_names, split.index.tolist()) == (names, [1, 3])
    assert split.inputs == [f"{role} says 1", f"{role} says 3"]
    assert split.labels.tolist() == ([0, 1] if names else [1.5, 2.0])
    note = f"2 of 4 rows of {role} are left out as unlabelled"
    assert task.reading.notes[0] == note
    assert note in data_line(task)


def test_minus_one_is_a_class_where_train_has_it_alone(tmp_path):
    test = Dataset.from_dict({"text": ["a", "b", "c"], "label": [-1, 1, 0]}, SENTENCE)
    folder = save(tmp_path / "hub", train=sentences(20), dev=sentences(4), test=test)
    assert load_task(folder).splits["test"].labels.tolist() == [1, 0]
    task = load_labels(tmp_path / "mine", train=[-1, 0, 1] * 6, validation=[-1, 0, 1], test=[-1, -1])
    assert task.label_names == ("-1", "0", "1")
    assert task.splits["test"].labels.tolist() == [0, 0]
    (note,) = task.reading.notes
    assert note == "macro F1, a mean over all 3 classes, counts 0 for 2 that test has none of: '0', '1'"


def test_train_without_a_label_is_refused_by_its_first_row(tmp_path):
    labels = {"validation": ["x", "y"], "train": ["x", "y", None, ""]}
    refused(r"label in every row .* 2 without, the first in line 3 of", load_labels, tmp_path / "a", **labels)


def test_numbers_may_be_minus_one_and_are_said_where_they_look_like_classes(tmp_path):
    task = load_labels(tmp_path / "a", train=[0.5, 1.0] * 6, validation=[0.5, -1.0, 2.0], test=[-1.0] * 3)
    assert task.splits["validation"].labels.tolist() == [0.5, -1.0, 2.0]
    assert "test" not in task.splits
    assert task.reading.notes == ()
    task = load_labels(tmp_path / "b", train=[0.0, 1.0] * 6, validation=[0.0, 1.0])
    assert task.kind.name == "regression"
    assert "labels are learned as numbers, though but 0, 1: without a point they" in task.reading.notes[0]


def test_classes_that_train_lacks_or_that_look_alike_are_said_with_counts(tmp_path):
    task = load_labels(
        tmp_path / "mine",
        train=["Positive", "negative", "neutral"] * 4,
        validation=["negative", "neutral", "Positive", "Positive"],
        test=["positive ", "negative", "positive ", "mixed"],
    )
    assert task.reading.notes == (
        "classes that differ by blanks or case alone are kept apart: 'Positive' (train 4, validation 2), "
        "'positive ' (test 2)",
        "macro F1, a mean over all 5 classes, counts 0 for 2 that validation has none of: 'mixed', 'positive '",
        "3 of 4 labels of test are of classes that train has none of: 'mixed' (1), 'positive ' (2)",
        "macro F1, a mean over all 5 classes, counts 0 for 2 that test has none of: 'Positive', 'neutral'",
    )
    assert "5 labels: Positive, mixed, negative, neutral, 'positive ';" in task_line(task)
    gold = task.gold("test")
    assert task.kind.scores(gold, gold.labels)["f1_macro"] == pytest.approx(3 / 5)


def load_words(folder, **splits):
    """Load a split per argument, of sentences whose tags are between bars."""
    tags = {split: [row.split("|") for row in rows] for split, rows in splits.items()}
    columns = {split: {"words": tags[split], "tags": tags[split]} for split in splits}
    return load_task(save(folder, **columns), text_column="words", label_column="tags")


def test_tags_of_all_splits_make_the_scheme_and_those_of_test_alone_are_said(tmp_path):
    train, test = ["B-X|I-X|O", "O|B-X"] * 3, ["B-X|E-X|S-Y", "O|O"]
    task = load_words(tmp_path / "mine", train=train, validation=["B-X|O"], test=test)
    assert task.title == "token classification by IOBES tags, 'O' for no entity, scored strictly"
    assert task.reading.notes == (
        "2 of 5 labels of test are of classes that train has none of: 'E-X' (1), 'S-Y' (1)",
        "9 of 9 tagged words of train are in no entity that begins and ends as IOBES has it",
        "1 of 1 tagged words of validation are in no entity that begins and ends as IOBES has it",
    )
    two = {"train": ["B-X|L-X|O", "O|S-X"], "validation": ["B-X|I-X"], "test": ["O"]}
    refused(r"in column 'tags' of .* the letters B, I, L, S; rename", load_words, tmp_path / "two", **two)


def test_sentences_of_which_words_have_no_tag_are_left_out(tmp_path):
    task = load_words(tmp_path / "a", train=["A|B", "B|A|A"] * 3, validation=["A|-1", "B"], test=["A", "B|"])
    assert [task.splits[role].index.tolist() for role in ("validation", "test")] == [[1], [0]]
    told = [f"1 of 2 rows of {role} are left out as unlabelled" for role in ("validation", "test")]
    assert [*task.reading.notes[:2]] == told


# Entries: folders laid out as the hub lays them out


def test_pairs_of_glue(tmp_path):
    def rows(n, start=0):
        texts = [f"It is {i}." for i in range(start, start + n)]
        return {"premise": texts, "hypothesis": ["So."] * n, "label": [i % 3 for i in range(n)]}

    parts = {"validation_matched": rows(9, 100), "validation_mismatched": rows(6, 200)}
    save(tmp_path / "glue" / "mnli", train=rows(60), **parts, test_matched=rows(3, 300))
    matched, mismatched = (load_task(name, data_dir=tmp_path) for name in ("mnli", "mnli-mismatched"))
    assert matched.splits["test"].inputs[0] == ("It is 100.", "So.")
    assert mismatched.splits["test"].inputs[0] == ("It is 200.", "So.")
    assert (matched.metric, matched.label_names[0]) == ("accuracy", "entailment")
    assert sizes(mismatched) == {"train": 54, "validation": 6, "test": 6}
    assert (matched.source, mismatched.name) == ("nyu-mll/glue:mnli", "mnli-mismatched")
    assert matched.fingerprint != mismatched.fingerprint


def test_the_numbers_of_stsb(tmp_path):
    scores = np.random.default_rng(0).uniform(0, 5, 80)
    train = {"sentence1": [f"a {i}" for i in range(80)], "sentence2": ["b"] * 80, "label": scores}
    save(tmp_path / "stsb", train=train, validation={**train, "label": scores + 5})
    task = load_task("stsb", data_dir=tmp_path)
    assert (task.kind.name, task.metric, task.label_names) == ("regression", "spearman", ())
    assert task.splits["test"].inputs[:2] == [("a 0", "b"), ("a 1", "b")]
    # Validation is drawn in equal shares from all tenths of the numbers, as far as 8 of 80 can be.
    order = np.argsort(np.argsort(scores))[task.splits["validation"].index] * 8 // 80
    assert sorted(order.tolist()) == list(range(8))
    for of in (task, load_task("stsb", data_dir=tmp_path, train_examples=20)):
        labels = of.splits["train"].labels
        assert of.kind.about()["label_scale"] == pytest.approx({"mean": labels.mean(), "sd": labels.std()})


def test_classes_of_words_are_a_kind_of_their_own(tmp_path):
    rows = {"tokens": [["Ann", "ran", "."]] * 12, "pos_tags": [["NN", "VB", "."]] * 12}
    save(tmp_path / "conll2003", train=rows, dev=rows, test=rows)
    task = load_task("conll2003-pos", data_dir=tmp_path)
    assert (task.name, task.kind.name, task.metric) == ("conll2003-pos", "word", "accuracy")
    assert task.baseline("test") == pytest.approx(1 / 3)
    for name in ("train.txt", "valid.txt", "test.txt"):
        (tmp_path / "files" / "conll2003").mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / "conll2003" / name).write_text("Ann NN I-NP I-PER\nran VB I-VP O\n\n. . O O\n")
    tagged = load_task("conll2003-pos", data_dir=tmp_path / "files")
    assert (tagged.kind.name, tagged.reading.columns) == ("word", ("0", "1"))
    assert tagged.label_names == (".", "NN", "VB")


# Metrics


def test_another_metric_can_select(tmp_path):
    folder = save(tmp_path / "mine", train=sentences(20), validation=sentences(6, start=20))
    words = save(tmp_path / "words", train=tagged(20), validation=tagged(6))
    by_kind = {"sequence": "accuracy"}
    for chosen in ({"metric": "accuracy"}, {"metrics": by_kind}):
        task = load_task(folder, **chosen)
        assert (task.metric, task.default_metric) == ("accuracy", "f1_macro")
    assert load_task(folder, metric="matthews", metrics=by_kind).metric == "matthews"
    assert load_task(words, metrics=by_kind).metric == "f1"
    assert load_task(words, metric="f1/PER").metric == "f1/PER"
    refuse("unknown metric of mine 'acuracy'; did you mean 'accuracy'", folder, metric="acuracy")
    refuse("unknown metric of words 'f1/ORG'; did you mean 'f1/PER'", words, metric="f1/ORG")


def test_the_data_decide_which_metrics_there_are(tmp_path):
    rows = sentences(40).rename_column("text", "sentence").add_column("mood", CLASSES)
    save(tmp_path / "cola", train=rows, validation=rows)
    for column, metric in (("mood", "f1_macro"), ("label", "matthews")):
        assert load_task("cola", data_dir=tmp_path, label_column=column).metric == metric
    for test, message in (("no", "something in test of no that auroc is"), ("maybe", "(?s)It has accuracy")):
        rows = {"text": TEXTS, "label": CLASSES}
        folder = save(tmp_path / test, train=rows, test={"text": ["a"], "label": [test]})
        refuse(message, folder, metric="auroc", **NAMED)


# Sizes


def test_draws_come_after_validation_follow_the_seed_and_grow(tmp_path):
    folder = save(tmp_path / "mine", train=sentences(200), test=sentences(50, start=200))
    whole = load_task(folder)
    task = load_task(folder, train_examples=20, eval_examples=7, test_examples=9, seed=3)
    assert sizes(task) == {"train": 20, "validation": 7, "test": 9}
    for name, split in task.splits.items():
        assert set(split.index) <= set(whole.splits[name].index)
        assert np.all(np.diff(split.index) > 0)
    assert task.splits["test"].inputs == [f"Row {200 + i}." for i in task.splits["test"].index]
    assert task.fingerprint == whole.fingerprint

    def drawn(n, seed):
        return load_task(folder, train_examples=n, seed=seed).splits["train"].index.tolist()

    assert drawn(10, 1) == drawn(10, 1) != drawn(10, 2)
    assert set(drawn(10, 1)) < set(drawn(20, 1))
    assert drawn(1000, 1) == whole.splits["train"].index.tolist()


# Fingerprints


def test_fingerprints_are_of_the_content(tmp_path):
    def rows(first, second, labels):
        return Dataset.from_dict({"text": [first, second] + ["x"] * 4, "label": labels * 3}, SENTENCE)

    plain = rows("Row 0.", "Row 1.", [0, 1])
    variants = {
        "plain": plain,
        "renamed": plain.rename_column("text", "said"),
        "moved": rows("Row 0.R", "ow 1.", [0, 1]),
        "flipped": rows("Row 0.", "Row 1.", [1, 0]),
        "named": plain.cast_column("label", ClassLabel(names=["no", "maybe"])),
    }
    folders = [save(tmp_path / name, train=of, validation=of) for name, of in variants.items()]
    plain, renamed, *others = (load_task(folder).fingerprint for folder in folders)
    assert plain == renamed
    assert len({plain, *others}) == 4


def test_examples_that_also_stand_in_train_are_known(tmp_path):
    test = datasets.concatenate_datasets([sentences(3, 100), sentences(4, 5), sentences(1, 5)])
    folder = save(tmp_path / "mine", train=sentences(20), validation=sentences(6, start=19), test=test)
    task = load_task(folder)
    assert {name: len(index) for name, index in task.also_in_train.items()} == {"validation": 1, "test": 5}
    add_shared(Folder(tmp_path / "results"), SimpleNamespace(also_in_train=task.also_in_train))
    assert read_shared(Folder(tmp_path / "results"), "test") == [3, 4, 5, 6, 7]
    words = save(tmp_path / "words", train=tagged(20), validation=tagged(4, start=18))
    assert load_task(words).also_in_train["validation"].tolist() == [0, 1]


# The embedded ones, and groups

# A change here changes every result on these datasets: it needs a changelog entry that says so.
EMBEDDED = [
    ("acceptability-demo", "sequence", "matthews", "0e4a1cbd27309a2f"),
    ("inference-demo", "sequence", "accuracy", "825d965e7edd92bb"),
    ("similarity-demo", "regression", "pearson", "4c085aa214af584c"),
    ("entities-demo", "token", "f1", "783d6aa8273f0a0f"),
    ("word-classes-demo", "word", "accuracy", "eada50613eb44daf"),
]


@pytest.mark.parametrize(("name", "kind", "metric", "fingerprint"), EMBEDDED)
def test_embedded_datasets_are_what_they_were(name, kind, metric, fingerprint):
    """The fingerprint is of sizes, texts, labels and their names."""
    task = load_task(name)
    assert (task.source, task.kind.name, task.metric) == ("embedded", kind, metric)
    assert task.fingerprint == fingerprint
    task.splits["test"].inputs.clear()
    task.splits["test"].labels[0] = 5
    assert load_task(name).fingerprint == fingerprint  # a caller may change what it got
    columns = r"(?s)unknown column of the package 'rating'.*Its columns: (words|text|first) \("
    refuse(columns, name, label_column="rating")


def test_groups_stay_together_and_are_part_of_what_data_is(tmp_path):
    n = np.arange(280)
    labels = np.where(n % 3 == 0, "yes", "no")
    rows = pd.DataFrame({"text": n, "label": labels, "author": n // 7, "one": "x"}).astype(str)
    folder = save(tmp_path / "a", train=rows[:210].to_dict("list"), test=rows[205:].to_dict("list"))
    task = load_task(folder, **NAMED, group_column="author")
    groups = {role: {*split.groups.tolist()} for role, split in task.splits.items()}
    assert not groups["train"] & groups["validation"]
    assert 0.05 < (share := len(task.splits["validation"]) / 210) < 0.15
    more = load_task(folder, **NAMED, group_column="author", splits=["validation=40%"])
    assert 0.37 < len(more.splits["validation"]) / 210 < 0.43
    assert {*task.splits["validation"].labels.tolist()} == {0, 1}
    assert task.reading.roles["validation"] == f"{100 * share:.3g}% of train, in whole groups"
    large = rows.assign(author=[*["all"] * 140, *rows["author"][140:]])
    large = load_task(save(tmp_path / "large", train=large.to_dict("list")), **NAMED, group_column="author")
    assert len(large.splits["validation"]) < 42, "not the group of 140"
    assert task.reading.notes[-2:] == (
        "groups by 'author': train 27, validation 3, test 11",
        "1 groups of test are in train too",
    )
    both = {**NAMED, "splits": ["train=train.jsonl", "validation=test.jsonl"]}
    prints = [load_task(folder, **both, group_column=group).fingerprint for group in (None, "author", "one")]
    assert len(set(prints)) == 3
    for column, message in (("autor", "author"), ("one", "wanted at least 10 groups in train")):
        refuse(message, folder, **NAMED, group_column=column)
    refuse("wanted 1% to 99% of train", folder, **NAMED, group_column="text", splits=["validation=0.4%"])
    refuse("wanted 99.9% of train as validation", folder, **NAMED, splits=["validation=99.9%"])
    rare = rows[:160].assign(label=[f"class {i % 20}" for i in range(160)], author=n[:160] // 4).astype(str)
    folder = save(tmp_path / "rare", train=rare.to_dict("list"))
    refuse("as many examples of its largest class, .* got 40 and 8;", folder, **NAMED, group_column="author")
    third = rows[:150].assign(author=n[:150] // 2).astype(str)  # of 75 a class no hundredths can be made
    folder = save(tmp_path / "third", train=third.to_dict("list"))
    cut = load_task(folder, **NAMED, group_column="author", splits=["validation=33%"])
    assert 0.3 < len(cut.splits["validation"]) / 150 < 0.36
