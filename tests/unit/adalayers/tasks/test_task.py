"""From a name, a folder or the hub to a task: names, columns, splits, draws, fingerprints, embedded datasets."""

import json

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from adalayers.command.run import add_shared
from adalayers.errors import BadInput
from adalayers.results.measures import read_shared
from adalayers.storage import hub
from adalayers.storage.folder import Folder
from adalayers.tasks.catalog import CATALOG
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.task import canonical, load_task

TEXT, WORDS = Value("string"), List(Value("string"))
SENTENCE = Features({"text": TEXT, "label": ClassLabel(names=["no", "yes"])})
TAGS = List(ClassLabel(names=["O", "B-PER", "I-PER"]))
TAGGED = Features({"words": WORDS, "tags": TAGS})


@pytest.fixture(autouse=True)
def no_hub(monkeypatch, tmp_path):
    """No test reads the hub or the user's cache, and each stands in an empty folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def sentences(n, start=0, features=SENTENCE):
    rows = range(start, start + n)
    return Dataset.from_dict({"text": [f"Row {i}." for i in rows], "label": [i % 2 for i in rows]}, features)


def tagged(n, start=0):
    words = [["Ann", f"saw{i}", "Bo", "Lee"][: 2 + i % 3] for i in range(start, start + n)]
    return Dataset.from_dict({"words": words, "tags": [[1, 0, 1, 2][: len(w)] for w in words]}, TAGGED)


def save(folder, **splits):
    """Write parquet files named as the hub names them, and return the folder as text."""
    folder.mkdir(parents=True)
    for split, rows in splits.items():
        rows.to_parquet(str(folder / f"{split}-00000-of-00001.parquet"))
    return str(folder)


def save_to_disk(folder, **splits):
    DatasetDict(splits).save_to_disk(str(folder))
    return str(folder)


def sizes(task):
    return {role: len(split) for role, split in task.splits.items()}


def assert_equal(task, other):
    assert task.fingerprint == other.fingerprint
    assert sizes(task) == sizes(other)
    for split, twin in zip(task.splits.values(), other.splits.values(), strict=True):
        assert split.inputs == twin.inputs
        np.testing.assert_array_equal(split.flat_labels, twin.flat_labels)
        np.testing.assert_array_equal(split.index, twin.index)


# Names


@pytest.mark.parametrize(
    ("spellings", "name", "source"),
    [
        (["cola", "CoLA", "nyu-mll/glue:cola", "glue:cola"], "cola", "nyu-mll/glue:cola"),
        (["imdb", "stanfordnlp/imdb", "stanfordnlp/imdb:plain_text"], "imdb", "stanfordnlp/imdb"),
        (["conll2003", "eriktks/conll2003"], "conll2003", "eriktks/conll2003"),
        (["acceptability-demo"], "acceptability-demo", "embedded"),
        (["Some/Data.Set"], "data.set", "Some/Data.Set"),
        (["some/set:Config One"], "set-config-one", "some/set:Config One"),
    ],
)
def test_all_spellings_are_one_dataset(spellings, name, source):
    resolved = {canonical(spelling) for spelling in spellings}
    assert len(resolved) == 1
    assert (resolved.pop().name, canonical(spellings[0]).source) == (name, source)


def test_a_known_name_goes_before_a_folder_and_a_folder_before_an_id(tmp_path):
    for folder in ("cola", "owner/set", "My Data"):
        (tmp_path / "here" / folder).mkdir(parents=True)
    assert canonical("cola").folder is None
    assert canonical("./cola").folder == (tmp_path / "here" / "cola").resolve()
    assert canonical("./cola").source == "local:cola"
    assert canonical("owner/set").folder is not None
    assert canonical("My Data/").name == canonical("My Data").name == "my-data"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("colla", "unknown dataset 'colla'; did you mean 'cola'"),
        ("wikitext", r"known: 20newsgroups, acceptability-demo, .*-demo\nA hub id"),
        ("wikiann", "wanted the language of wikiann, got none; name it after a colon"),
        ("", "unknown dataset ''"),
        ("./nowhere", "the path './nowhere', which is no folder"),
        ("/no/such/place", "which is no folder"),
        ("a/b/c", "which is no folder"),
        (__file__, "got the path .*a file is put into one of its own, called train.py"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(BadInput, match=message):
        canonical(name)


# The hub


def test_a_hub_out_of_reach_names_the_data_dir(tmp_path):
    for data_dir in (None, tmp_path):
        with pytest.raises(BadInput, match="out of reach"):
            load_task("owner/set", data_dir=data_dir)
    with pytest.raises(BadInput, match="--data-dir"):
        load_task("cola", data_dir=tmp_path / "missing")
    with pytest.raises(BadInput, match=r"'stanfordnlp/imdb' from the Hugging Face hub.*--data-dir"):
        load_task("imdb")


@pytest.fixture
def pretended_hub(monkeypatch):
    """A hub that answers; returns what it is asked for, and what it answers by id."""
    asked, answers = [], {}

    def load_dataset(path, name=None, *, revision=None):
        asked.append((path, name, revision))
        if path not in answers:
            raise datasets.exceptions.DatasetNotFoundError(f"Dataset {path!r} doesn't exist on the Hub.")
        if isinstance(answers[path], Exception):
            raise answers[path]
        return DatasetDict(answers[path])

    monkeypatch.setattr(hub, "require_hub", lambda what: None)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked, answers


def test_what_the_hub_is_asked_for(pretended_hub):
    asked, answers = pretended_hub
    answers["owner/set"] = {"train": sentences(20), "validation": sentences(4)}
    task = load_task("owner/set:part@abc")
    assert (task.name, task.source, task.revision) == ("set-part", "owner/set:part", "abc")
    for name in ("cola", "conll2003", "conll2003@main"):
        with pytest.raises(BadInput):
            load_task(name)
    assert asked == [
        ("owner/set", "part", "abc"),
        ("nyu-mll/glue", "cola", None),
        ("eriktks/conll2003", None, "refs/convert/parquet"),
        ("eriktks/conll2003", None, "main"),
    ]


def test_ids_that_the_hub_does_not_have_or_cannot_give(pretended_hub):
    _, answers = pretended_hub
    with pytest.raises(BadInput, match=r"wanted dataset 'owner/none' from the hub, got .*doesn't exist"):
        load_task("owner/none")
    answers["owner/old"] = RuntimeError("Dataset scripts are no longer supported, but found old.py")
    with pytest.raises(BadInput, match="owner/old@refs/convert/parquet"):
        load_task("owner/old")


def test_what_was_downloaded_before_is_used_offline(monkeypatch):
    def load_dataset(path, name=None, **other):
        assert datasets.config.HF_HUB_OFFLINE is True
        assert (path, name, other) == ("owner/set", None, {})
        return DatasetDict(train=sentences(20), validation=sentences(4))

    before = datasets.config.HF_HUB_OFFLINE
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert len(load_task("owner/set").splits["train"]) == 20
    assert datasets.config.HF_HUB_OFFLINE is before
    with pytest.raises(BadInput, match="out of reach"):
        load_task("owner/set@abc")  # the cache cannot tell which revision it holds


def test_hub_and_local_copy_are_the_same_task(pretended_hub, tmp_path, monkeypatch):
    _, answers = pretended_hub
    glue = {"train": sentences(40), "validation": sentences(10, start=40), "test": sentences(5, start=50)}
    renamed = {split: rows.rename_column("text", "sentence") for split, rows in glue.items()}
    answers["nyu-mll/glue"] = renamed
    from_hub = load_task("cola")
    monkeypatch.undo()
    save(tmp_path / "data" / "cola", train=renamed["train"], validation=renamed["validation"])
    from_folder = load_task("nyu-mll/glue:cola", data_dir=tmp_path / "data")
    assert_equal(from_hub, from_folder)


# Where local copies lie, and their formats


@pytest.mark.parametrize("folder", ["set-part", "set/part", "part"])
def test_local_copies_of_a_config(tmp_path, folder):
    save(tmp_path / folder, train=sentences(20), validation=sentences(4))
    assert load_task("owner/Set:part", data_dir=tmp_path).name == "set-part"


def test_folders_of_every_format_are_the_same_task(tmp_path):
    train, validation = sentences(20), sentences(6, start=20)
    first = load_task(save(tmp_path / "parquet" / "mine", train=train, validation=validation))
    assert (first.name, first.source, first.metric) == ("mine", "local:mine", "f1_macro")
    assert first.label_names == ("no", "yes")
    DatasetDict(train=train, validation=validation).save_to_disk(str(tmp_path / "disk"))
    for split, rows in {"train": train, "validation": validation}.items():
        named = pd.DataFrame({"text": rows["text"], "label": [("no", "yes")[i] for i in rows["label"]]})
        for kind in ("csv", "json"):  # folders named like a format were once read as the format
            (tmp_path / kind).mkdir(exist_ok=True)
        named.to_csv(tmp_path / "csv" / f"{split}.csv", index=False)
        named.to_json(tmp_path / "json" / f"{split}.jsonl", orient="records", lines=True)
    for folder in ("disk", "csv", "json"):
        assert_equal(load_task(str(tmp_path / folder), label_column="label"), first)
    assert not (tmp_path / "cache").exists()  # the user's cache holds no copy of what is on disk


def test_a_single_dataset_saved_to_disk_is_its_train_split(tmp_path):
    sentences(40).save_to_disk(str(tmp_path / "one"))
    assert sizes(load_task(str(tmp_path / "one"))) == {"train": 36, "validation": 4}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, r"wanted files of data in .*mine', which has none; give a folder"),
        ({"train.xlsx": "x"}, "which has train.xlsx; give a folder"),
        ({"train.csv": "\xff\xfe"}, "wanted a header line and rows in train.csv, which is empty; fill it"),
        ({"train.parquet": "no parquet"}, "wanted parquet in train.parquet, which cannot be read as such"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "mine").mkdir()
    for name, text in content.items():
        (tmp_path / "mine" / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=message):
        load_task(str(tmp_path / "mine"))


def write_rows(folder, name="train.csv", n=40, **columns):
    folder.mkdir(exist_ok=True)
    frame = pd.DataFrame({column: [made(i) for i in range(n)] for column, made in columns.items()})
    frame.to_csv(folder / name, index=False, sep="\t" if name.endswith(".tsv") else ",")


def text_of(i):
    return f"Row {i}."


def class_of(i):
    return ("no", "yes")[i % 2]


def test_a_folder_whose_name_is_a_pattern(tmp_path):
    folder = tmp_path / "br[ab]"
    write_rows(folder, text=text_of, label=class_of)
    for _ in range(2):
        assert len(load_task(str(folder)).splits["train"]) == 36
    assert [path.name for path in folder.iterdir()] == ["train.csv"]


@pytest.mark.parametrize(
    ("label", "kind", "names"),
    [
        (class_of, "sequence", ("no", "yes")),
        (lambda i: i % 3, "sequence", ("0", "1", "2")),
        (lambda i: i / 7, "regression", ()),
    ],
)
def test_of_two_columns_it_is_plain_which_are_the_labels(tmp_path, label, kind, names):
    write_rows(tmp_path / "mine", "train.tsv", utterance=text_of, intent=label)
    task = load_task(str(tmp_path / "mine"))
    assert (task.kind.name, task.label_names, task.reading.columns) == (kind, names, ("utterance", "intent"))


def test_several_columns_of_text_are_proposed(tmp_path):
    texts = {"sentence1": text_of, "sentence2": lambda i: f"Or {i}."}
    write_rows(tmp_path / "mine", id=lambda i: i, **texts, gold=class_of)
    with pytest.raises(BadInput, match=r"try .*; --text-column sentence1,sentence2 --label-c") as error:
        load_task(str(tmp_path / "mine"))
    assert "--text-column sentence1 --label-column gold" in str(error.value).splitlines()[0]


def test_a_folder_of_data_dir_is_found_by_its_own_name(tmp_path):
    write_rows(tmp_path / "colla", text=text_of, label=class_of)
    task = load_task("colla", data_dir=tmp_path)
    assert (task.name, task.source, task.reading.path) == ("colla", "local:colla", str(tmp_path / "colla"))
    with pytest.raises(BadInput, match=r"(?s)did you mean 'cola'.*no folder .*/collla"):
        load_task("collla", data_dir=tmp_path)


def test_what_was_looked_for_in_data_dir_is_said(tmp_path):
    with pytest.raises(BadInput, match=rf"no folder {tmp_path}/cola, {tmp_path}/glue/cola"):
        load_task("cola", data_dir=tmp_path)


def test_what_was_read_and_what_was_not(tmp_path):
    rows = {"train": sentences(40), "validation": sentences(10, start=40), "test": sentences(9, start=90)}
    named = {split: table.rename_column("text", "sentence") for split, table in rows.items()}
    folder = save(tmp_path / "cola", **named)
    write_rows(tmp_path / "cola", "more.csv", text=text_of)
    task = load_task("cola", data_dir=tmp_path)
    assert (task.metric, task.reading.path) == ("matthews", folder)
    assert task.reading.roles == {
        "train": "train-00000-of-00001.parquet",
        "validation": "a tenth of train",
        "test": "validation-00000-of-00001.parquet",
    }
    assert task.reading.unused == (
        "more.csv (another format)",
        "test-00000-of-00001.parquet (no role)",
    )
    assert task.splits["test"].inputs == rows["validation"]["text"][:]
    assert sizes(task) == {"train": 36, "validation": 4, "test": 10}
    unlabelled_test = save(tmp_path / "mine", train=sentences(40), test=unlabelled(5))
    assert load_task(unlabelled_test).reading.unused == ("test-00000-of-00001.parquet (no labels)",)


def test_copies_of_known_datasets_that_lost_their_class_names_keep_the_hubs(tmp_path):
    tasks = []
    for copy, tags in {"ints": [[1, 0], [1]], "names": [["B-PER", "O"], ["B-PER"]]}.items():
        (tmp_path / copy / "conll2003").mkdir(parents=True)
        rows = pd.DataFrame({"tokens": [["Ann", "ran"], ["Bo"]], "ner_tags": tags})
        for split in ("train", "validation", "test"):
            rows.to_parquet(tmp_path / copy / "conll2003" / f"{split}.parquet")
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
    both = np.concatenate([task.splits["train"].index, validation.index])
    assert sorted(both) == list(range(400))
    assert validation.inputs == [f"Row {i}." for i in validation.index]
    assert task.splits["test"].index.tolist() == list(range(7))
    halves = train.train_test_split(test_size=0.1, seed=42, stratify_by_column="label")
    assert sorted(validation.inputs) == sorted(halves["test"]["text"])


def test_tokens_without_validation_give_up_an_unstratified_tenth(tmp_path):
    train = tagged(50)
    task = load_task(save(tmp_path / "mine", train=train))
    halves = train.train_test_split(test_size=0.1, seed=42)
    assert sorted(task.splits["validation"].inputs) == sorted(halves["test"]["words"])
    assert (len(task.splits["train"]), task.kind.name, task.metric) == (45, "token", "f1")
    for words, labels in zip(task.splits["train"].inputs, task.splits["train"].labels, strict=True):
        assert labels.dtype == np.int64
        assert labels.tolist() == [1, 0, 1, 2][: len(words)]


@pytest.mark.parametrize("split", ["dev", "valid", "val"])
def test_other_names_of_validation(tmp_path, split):
    task = load_task(save_to_disk(tmp_path / "mine", **{"train": sentences(20), split: sentences(4)}))
    assert sizes(task) == {"train": 20, "validation": 4}


def test_a_test_split_without_labels_is_none(tmp_path):
    rows = {"train": sentences(20), "validation": sentences(4)}
    task = load_task(save_to_disk(tmp_path / "none", **rows))
    for name, test in (("hidden", unlabelled(1)), ("missing", sentences(3).remove_columns("label"))):
        assert_equal(load_task(save_to_disk(tmp_path / name, **rows, test=test)), task)


def unlabelled(n):
    return Dataset.from_dict({"text": [f"Row {i}." for i in range(n)], "label": [-1] * n}, SENTENCE)


def partly(n):
    labels = [-1] + [1] * (n - 1)
    return unlabelled(n).remove_columns("label").add_column("label", labels, feature=SENTENCE["label"])


def without_text(n):
    return Dataset.from_dict({"text": [None] * n, "label": [0, 1] * (n // 2)}, SENTENCE)


MISMATCHED = Dataset.from_dict({"words": [["a", "b"], ["c", "d"]], "tags": [[0, 1], [0]]}, TAGGED)
SWAPPED = Features({"text": TEXT, "label": ClassLabel(names=["yes", "no"])})


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"test": sentences(4)}, "wanted split 'train' of .*, which has test"),
        ({"train": unlabelled(20)}, "wanted labels in column 'label' of train"),
        ({"train": sentences(20), "validation": unlabelled(4)}, "wanted labels .* of validation"),
        ({"train": partly(20)}, r"wanted labels in 0\.\.1 in column 'label' .*, got 1 others"),
        ({"train": without_text(20)}, "wanted text in column 'text' of train.*row 0"),
        ({"train": sentences(3)}, "wanted a tenth of train.*of the rarest class 1; bring"),
        ({"train": sentences(1)}, "wanted a tenth of train"),
        ({"train": tagged(1)}, "wanted a tenth of train .* got 1 example"),
        ({"train": MISMATCHED}, "wanted a tag per word in .*, got 1 for 2 words in row 1"),
        ({"train": sentences(20), "validation": sentences(4, features=SWAPPED)}, "to be train's, got others"),
    ],
)
def test_data_that_cannot_be_used(tmp_path, splits, message):
    folder = save_to_disk(tmp_path / "mine", **splits)
    with pytest.raises(BadInput, match=message) as caught:
        load_task(folder)
    assert ";" in str(caught.value).splitlines()[0]  # what to do, on the first line


def test_empty_splits(pretended_hub):
    _, answers = pretended_hub
    rows = {"train": sentences(20), "validation": sentences(4), "test": sentences(0)}
    answers["owner/set"] = rows
    assert set(load_task("owner/set").splits) == {"train", "validation"}
    for role in ("train", "validation"):
        answers["owner/set"] = {**rows, role: sentences(0)}
        with pytest.raises(BadInput, match=rf"wanted examples in {role} .*, which is empty"):
            load_task("owner/set")


# Columns


def frame(tmp_path, features, **columns):
    rows = Dataset.from_dict(columns, Features(features))
    return save(tmp_path / "mine", train=rows, validation=rows)


def test_columns_are_found_by_type(tmp_path):
    features = {"id": TEXT, "n": Value("int64"), "said": TEXT, "kind": ClassLabel(names=["a", "b"])}
    task = load_task(frame(tmp_path, features, id=["x", "y"], n=[3, 4], said=["Hi.", "No."], kind=[1, 0]))
    assert task.splits["train"].inputs == ["Hi.", "No."]
    assert task.splits["train"].labels.tolist() == [1, 0]
    assert task.label_names == ("a", "b")


def test_ambiguous_columns_are_listed(tmp_path):
    features = {"one": Value("string"), "two": Value("string"), "label": ClassLabel(names=["a", "b"])}
    folder = frame(tmp_path, features, one=["p", "q"], two=["r", "s"], label=[0, 1])
    with pytest.raises(BadInput, match="several such pairs") as caught:
        load_task(folder)
    assert "--text-column two --label-column label" in str(caught.value)
    assert "--text-column one,two --label-column label" in str(caught.value)
    assert load_task(folder, text_column="two").splits["train"].inputs == ["r", "s"]
    pairs = load_task(folder, text_column="one,two")
    assert pairs.splits["train"].inputs == [("p", "r"), ("q", "s")]
    assert (pairs.kind.name, pairs.shared) == ("sequence", {"validation": 2})
    with pytest.raises(BadInput, match=r"unknown column of .* 'tow'; did you mean 'two'"):
        load_task(folder, text_column="one,tow")


def test_labels_without_classes_must_be_named(tmp_path):
    features = {"text": "string", "stars": "int64", "mood": "string", "score": "float32"}
    stars, moods, scores = [-1, 1, 5], ["up", "down", "up"], np.float32([0.1, 0.2, 0.3])
    columns = {"text": ["a", "b", "c"], "stars": stars, "mood": moods, "score": scores}
    folder = frame(tmp_path, {name: Value(dtype) for name, dtype in features.items()}, **columns)
    with pytest.raises(BadInput, match="none such") as caught:
        load_task(folder)
    assert "stars (int)" in str(caught.value)
    for label, names, labels, kind in (
        ("mood", ("down", "up"), [1, 0, 1], "sequence"),
        ("stars", ("-1", "1", "5"), [0, 1, 2], "sequence"),
        ("score", (), scores.tolist(), "regression"),
    ):
        task = load_task(folder, text_column="text", label_column=label)
        assert (task.label_names, task.kind.name) == (names, kind)
        assert task.splits["train"].labels.tolist() == labels
    with pytest.raises(BadInput, match=r"unknown column of .* 'stas'; did you mean 'stars'"):
        load_task(folder, label_column="stas")
    with pytest.raises(BadInput, match="none such"):
        load_task(folder, text_column="stars", label_column="mood")


def test_text_that_is_no_utf8_is_refused_by_column_and_split(tmp_path):
    for split, texts in (("train", [b"Fine."] * 19 + [b"\x80"]), ("validation", [b"Fine."] * 4)):
        as_bytes = pa.array(texts, pa.binary())
        text = pa.Array.from_buffers(pa.string(), len(texts), as_bytes.buffers())  # unchecked, as if damaged
        table = pa.table([text, pa.array([0, 1] * (len(texts) // 2))], schema=SENTENCE.arrow_schema)
        pyarrow.parquet.write_table(table, tmp_path / f"{split}-00000-of-00001.parquet")
    with pytest.raises(BadInput, match=r"UTF-8 text in column 'text' of train-.* got byte 0x80"):
        load_task(str(tmp_path))


def test_tags_by_name_are_inferred_and_numbers_or_times_refused(tmp_path):
    features = {"words": WORDS, "tags": WORDS, "ids": List(Value("int64")), "when": Value("timestamp[s]")}
    tags = {"tags": [["O"], ["B-X", "I-X"]], "ids": [[0], [1, 2]], "when": [0, 1]}
    folder = frame(tmp_path, features, words=[["a"], ["b", "c"]], **tags)
    task = load_task(folder, text_column="words", label_column="tags")
    assert task.label_names == ("B-X", "I-X", "O")
    assert [labels.tolist() for labels in task.splits["validation"].labels] == [[2], [0, 1]]
    for column, message in (("ids", "; cast it to a list of ClassLabel"), ("when", "got timestamp")):
        with pytest.raises(BadInput, match=f"wanted classes or numbers in column '{column}' .*{message}"):
            load_task(folder, text_column="words", label_column=column)


def test_columns_that_hold_no_classes(tmp_path):
    features, numbers = {"text": TEXT, "one": TEXT, "many": TEXT}, list(map(str, range(300)))
    folder = frame(tmp_path, features, text=["Hi."] * 300, one=["a"] * 300, many=numbers)
    for column, message in (("one", "at least two classes"), ("many", "at most 200 classes .* got 300")):
        with pytest.raises(BadInput, match=message):
            load_task(folder, text_column="text", label_column=column)


# Entries: folders laid out as the hub lays them out


def test_pairs_of_glue(tmp_path):
    names = ClassLabel(names=["entailment", "neutral", "contradiction"])
    features = Features({name: Value("string") for name in ("premise", "hypothesis")} | {"label": names})

    def rows(n, start=0, label=None):
        labels = [i % 3 if label is None else label for i in range(n)]
        texts = [f"It is {i}." for i in range(start, start + n)]
        return Dataset.from_dict({"premise": texts, "hypothesis": ["So."] * n, "label": labels}, features)

    parts = {"validation_matched": rows(9, 100), "validation_mismatched": rows(6, 200)}
    save(tmp_path / "glue" / "mnli", train=rows(60), **parts, test_matched=rows(3, 300, label=-1))
    matched = load_task("mnli", data_dir=tmp_path)
    mismatched = load_task("mnli-mismatched", data_dir=tmp_path)
    assert matched.splits["train"].inputs[0][1] == "So."
    assert matched.splits["test"].inputs[0] == ("It is 100.", "So.")
    assert mismatched.splits["test"].inputs[0] == ("It is 200.", "So.")
    assert (matched.metric, matched.label_names) == ("accuracy", tuple(names.names))
    assert sizes(mismatched) == {"train": 54, "validation": 6, "test": 6}
    assert (matched.source, mismatched.name) == ("nyu-mll/glue:mnli", "mnli-mismatched")
    assert matched.fingerprint != mismatched.fingerprint


def test_the_numbers_of_stsb(tmp_path):
    def rows(first, second, scores):
        return Dataset.from_dict({"sentence1": first, "sentence2": second, "label": np.float32(scores)})

    scores = np.random.default_rng(0).uniform(0, 5, 80).astype(np.float32)
    save(
        tmp_path / "stsb",
        train=rows([f"a {i}" for i in range(80)], ["b"] * 80, scores),
        validation=rows(["c", "d"], ["e", "f"], [1.5, 4.0]),
        test=rows(["g"], ["h"], [-1.0]),
    )
    task = load_task("stsb", data_dir=tmp_path)
    assert (task.kind.name, task.metric, task.label_names) == ("regression", "spearman", ())
    assert sizes(task) == {"train": 72, "validation": 8, "test": 2}
    assert task.splits["test"].inputs == [("c", "e"), ("d", "f")]
    np.testing.assert_array_equal(task.splits["test"].labels, np.float32([1.5, 4.0]))
    # Validation is drawn in equal shares from all tenths of the numbers, as far as 8 of 80 can be.
    order = np.argsort(np.argsort(scores))[task.splits["validation"].index] * 8 // 80
    assert sorted(order.tolist()) == list(range(8))
    labels = task.splits["train"].labels
    assert task.kind.about()["label_scale"] == pytest.approx({"mean": labels.mean(), "sd": labels.std()})
    assert task.baseline("test") == 0.0


def test_classes_of_words_are_a_kind_of_their_own(tmp_path):
    words = List(ClassLabel(names=["NN", "VB", "."]))
    features = Features({"tokens": List(Value("string")), "pos_tags": words})
    rows = Dataset.from_dict({"tokens": [["Ann", "ran", "."]] * 12, "pos_tags": [[0, 1, 2]] * 12}, features)
    save(tmp_path / "conll2003", train=rows, validation=rows, test=rows)
    task = load_task("conll2003-pos", data_dir=tmp_path)
    assert (task.kind.name, task.metric, task.source) == ("word", "accuracy", "eriktks/conll2003")
    assert task.baseline("test") == pytest.approx(1 / 3)
    treebank = rows.rename_columns({"pos_tags": "upos"})
    DatasetDict(train=treebank, dev=treebank, test=treebank).save_to_disk(str(tmp_path / "xx_yy"))
    task = load_task("universal-dependencies:xx_yy", data_dir=tmp_path)
    assert (task.name, task.kind.name) == ("universal-dependencies-xx_yy", "word")


def test_every_entry_has_a_metric_of_its_kind_and_names_that_lead_to_it():
    for name, entry in CATALOG.items():
        if entry.by_config:
            assert canonical(f"{name}:part").entry is entry
        else:
            assert canonical(name).entry is entry
            assert all(canonical(identifier).entry is entry for identifier in entry.also)
        assert any(entry.metric in kind.metrics_of(()) for kind in KINDS.values())
    assert canonical("eriktks/conll2003").name == "conll2003"
    assert canonical("nyu-mll/glue:mnli").name == "mnli"


# Sizes


def test_another_label_column_is_another_metric(tmp_path):
    rows = sentences(20).rename_column("text", "sentence")
    rows = rows.add_column("mood", ["up", "down"] * 10)
    save(tmp_path / "cola", train=rows, validation=rows)
    assert load_task("cola", data_dir=tmp_path, label_column="mood").metric == "f1_macro"
    assert load_task("cola", data_dir=tmp_path, label_column="label").metric == "matthews"


def test_another_metric_can_select(tmp_path):
    folder = save(tmp_path / "mine", train=sentences(20), validation=sentences(6, start=20))
    words = save(tmp_path / "words", train=tagged(20), validation=tagged(6))
    assert load_task(folder).metric == load_task(folder, metric="f1_macro").metric == "f1_macro"
    assert load_task(words, metric="f1/PER").metric == "f1/PER"
    for chosen in ({"metric": "accuracy"}, {"metrics": {"sequence": "accuracy"}}):
        task = load_task(folder, **chosen)
        assert (task.metric, task.default_metric) == ("accuracy", "f1_macro")
    by_kind = {"sequence": "accuracy"}
    assert load_task(folder, metric="matthews", metrics=by_kind).metric == "matthews"
    assert load_task(words, metrics=by_kind).metric == "f1"
    for wrong in ({"metric": "acuracy"}, {"metrics": {"sequence": "acuracy"}}):
        with pytest.raises(BadInput, match="unknown metric of mine 'acuracy'; did you mean 'accuracy'"):
            load_task(folder, **wrong)
    with pytest.raises(BadInput, match="unknown metric of words 'f1/ORG'; did you mean 'f1/PER'"):
        load_task(words, metric="f1/ORG")


def test_a_metric_that_a_split_leaves_undefined(tmp_path):
    none = Dataset.from_dict({"words": [["saw", "it"]] * 3, "tags": [[0, 0]] * 3}, TAGGED)
    folder = save(tmp_path / "words", train=tagged(20), validation=none)
    with pytest.raises(BadInput, match="in validation of words that f1/PER is about, got none in 3 examples"):
        load_task(folder, metric="f1/PER")


def test_train_examples_come_after_validation(tmp_path):
    folder = save(tmp_path / "mine", train=sentences(200), test=sentences(50, start=200))
    whole = load_task(folder)
    assert sizes(load_task(folder, train_examples=20, eval_examples=7))["test"] == 50
    task = load_task(folder, train_examples=20, eval_examples=7, test_examples=9, seed=3)
    assert sizes(task) == {"train": 20, "validation": 7, "test": 9}
    for name, split in task.splits.items():
        assert set(split.index) <= set(whole.splits[name].index)
        assert np.all(np.diff(split.index) > 0)
    assert task.splits["train"].inputs == [f"Row {i}." for i in task.splits["train"].index]
    assert task.splits["test"].inputs == [f"Row {200 + i}." for i in task.splits["test"].index]
    assert task.fingerprint == whole.fingerprint


def test_draws_follow_the_seed_and_grow(tmp_path):
    folder = save(tmp_path / "mine", train=tagged(60), validation=tagged(20))

    def drawn(n, seed):
        return load_task(folder, train_examples=n, seed=seed).splits["train"].index.tolist()

    assert drawn(10, 1) == drawn(10, 1)
    assert drawn(10, 1) != drawn(10, 2)
    assert set(drawn(10, 1)) < set(drawn(20, 1))
    assert drawn(1000, 1) == list(range(60))


# Fingerprints


def test_fingerprints_are_of_the_content(tmp_path):
    def rows(first, second, labels):
        return Dataset.from_dict({"text": [first, second] + ["x"] * 4, "label": labels * 3}, SENTENCE)

    plain = rows("Row 0.", "Row 1.", [0, 1])
    variants = {
        "plain": plain,
        "moved": rows("Row 0.R", "ow 1.", [0, 1]),
        "flipped": rows("Row 0.", "Row 1.", [1, 0]),
        "named": plain.cast(Features({"text": TEXT, "label": ClassLabel(names=["no", "maybe"])})),
        "renamed": plain.rename_column("text", "said"),
    }
    prints = {
        name: load_task(save(tmp_path / name, train=variant, validation=variant)).fingerprint
        for name, variant in variants.items()
    }
    assert prints["plain"] == prints["renamed"]
    assert len(set(prints.values())) == 4
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in prints.values())


def test_examples_that_also_stand_in_train_are_known(tmp_path):
    train = sentences(20)
    test = datasets.concatenate_datasets([sentences(3, 100), sentences(4, 5), sentences(1, 5)])
    folder = save(tmp_path / "mine", train=train, validation=sentences(6, start=19), test=test)
    task = load_task(folder)
    assert task.shared == {"validation": 1, "test": 5}
    assert task.also_in_train["test"].tolist() == [3, 4, 5, 6, 7]
    add_shared(Folder(tmp_path / "results"), task)
    assert read_shared(Folder(tmp_path / "results"), "test") == [3, 4, 5, 6, 7]
    words = save(tmp_path / "words", train=tagged(20), validation=tagged(4, start=18))
    assert load_task(words).shared == {"validation": 2}


# The embedded ones, scores, baselines

CONLL = ("O", *(f"{prefix}-{name}" for name in ("PER", "ORG", "LOC", "MISC") for prefix in "BI"))
NLI = ("entailment", "neutral", "contradiction")
UPOS = "ADJ ADP ADV AUX CCONJ DET NOUN NUM PART PRON PROPN PUNCT SCONJ VERB"
# A change here changes every result on these datasets: it needs a changelog entry that says so.
EMBEDDED = [
    ("acceptability-demo", "sequence", "matthews", ("unacceptable", "acceptable"), "0e4a1cbd27309a2f"),
    ("inference-demo", "sequence", "accuracy", NLI, "825d965e7edd92bb"),
    ("similarity-demo", "regression", "pearson", (), "4c085aa214af584c"),
    ("entities-demo", "token", "f1", CONLL, "783d6aa8273f0a0f"),
    ("word-classes-demo", "word", "accuracy", tuple(UPOS.split()), "eada50613eb44daf"),
]


@pytest.mark.parametrize(("name", "kind", "metric", "label_names", "fingerprint"), EMBEDDED)
def test_embedded_datasets_are_what_they_were(name, kind, metric, label_names, fingerprint):
    task = load_task(name)
    assert (task.kind.name, task.metric, task.label_names) == (kind, metric, label_names)
    assert (task.source, task.revision, task.fingerprint) == ("embedded", None, fingerprint)
    assert sizes(task) == {"train": 2000, "validation": 400, "test": 400}
    assert task.shared == {"validation": 0, "test": 0}
    for split in task.splits.values():
        labels = split.flat_labels
        assert labels.dtype == (np.int64 if label_names else np.float32)
        if label_names:
            assert set(labels.tolist()) == set(range(len(label_names)))
    split.inputs.clear()
    split.labels[0] = 5
    assert load_task(name).fingerprint == fingerprint  # a caller may change what it got


def test_columns_of_the_embedded_are_named_where_another_is_asked_for():
    with pytest.raises(
        BadInput, match=r"unknown column of the package 'tags'.*\n?Its columns: words \(words\), lab"
    ):
        load_task("entities-demo", label_column="tags")


def test_groups_stay_together_and_are_part_of_what_data_is(tmp_path):
    rows = [
        {"text": f"text {i}", "label": ("no", "yes")[i % 3 == 0], "author": f"a{i // 7}", "one": "x"}
        for i in range(280)
    ]
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, part in (("train", rows[:210]), ("test", rows[205:])):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in part))
    plain = load_task(str(folder), text_column="text", label_column="label")
    again = load_task(
        str(folder), group_column="author"
    )  # it is neither text nor label, though it might be either
    assert again.reading.columns == ("text", "label")
    groups = {role: {*split.groups.tolist()} for role, split in again.splits.items()}
    assert not groups["train"] & groups["validation"]
    assert 0.05 < len(again.splits["validation"]) / 210 < 0.15
    assert {*again.splits["validation"].labels.tolist()} == {0, 1}
    assert again.reading.notes[-2:] == (
        "groups by 'author': train 27, validation 3, test 11",
        "1 groups of test are in train too",
    )
    assert plain.splits["train"].groups is None
    assert plain.fingerprint != again.fingerprint
    for column, message in (("autor", "author"), ("one", "wanted at least 10 groups in train")):
        with pytest.raises(BadInput, match=message):
            load_task(str(folder), text_column="text", label_column="label", group_column=column)
    with pytest.raises(BadInput, match="unknown column of train of the package 'author'"):
        load_task("acceptability-demo", group_column="author")


def test_documents_of_column_files_are_groups(tmp_path):
    documents = "".join(f"-DOCSTART- O\n\nEU{i} B-ORG\nsaid O\n\nit O\n\n" for i in range(30))
    for name in ("train", "test"):
        (tmp_path / f"{name}.conll").write_text(documents)
    task = load_task(str(tmp_path), group_column="document")
    assert "groups by 'document': train 27, validation 3, test 30" in task.reading.notes
    assert task.splits["test"].groups.tolist() == np.repeat(np.arange(30) + 30, 2).tolist()


def test_a_ranking_selects_only_where_both_of_two_classes_are(tmp_path):
    def wrote(*validation: str, **more: str) -> str:
        for name, labels in {"train": ["no", "yes"] * 9, "dev": validation, **more}.items():
            rows = "".join(f"text {i} of {name},{label}\n" for i, label in enumerate(labels))
            (tmp_path / f"{name}.csv").write_text(f"text,label\n{rows}")
        return str(tmp_path)

    columns = {"text_column": "text", "label_column": "label"}
    assert load_task(wrote("no", "yes"), metric="auroc", **columns).baseline("validation") == 0.5
    with pytest.raises(BadInput, match=r"in validation of .* that auroc is about, got none"):
        load_task(wrote("no", "no"), metric="auroc", **columns)
    with pytest.raises(BadInput, match="auroc") as error:
        load_task(wrote("no", "yes", test=["maybe"]), metric="auroc", **columns)
    assert "It has accuracy, f1_macro, matthews." in str(error.value)


def test_a_clone_of_several_configs_is_not_taken_for_one_of_them(tmp_path):
    """Where files are named by config the error says so; the folder of a config is read as it."""
    for config in ("de", "en"):
        write_rows(tmp_path / "set", f"train-{config}.csv", text=text_of, label=class_of)
    for name in ("owner/set", str(tmp_path / "set")):
        with pytest.raises(BadInput, match=r"wanted one train split .* train-de.csv, train-en.csv"):
            load_task(name, data_dir=tmp_path)
    with pytest.raises(BadInput, match=rf"no folder .*{tmp_path}/set/de, {tmp_path}/de\)"):
        load_task("owner/set:de", data_dir=tmp_path)
    write_rows(tmp_path / "set" / "de", text=text_of, label=class_of)
    assert load_task("owner/set:de", data_dir=tmp_path).name == "set-de"
