"""What stands in data files is what is read: types over all splits, quotes, headers, lines, encodings, formats."""

import gzip
import json
import math

import pandas as pd
import pytest

from adalayers.tasks import files, tables
from tests.helpers.loading import load_task
from tests.helpers.refusing import refused


def read(root, *contents, ending="csv"):
    """Write a file for each split, and return them as they are read."""
    root.mkdir(exist_ok=True)
    for name, content in zip(("train", "validation", "test"), contents, strict=False):
        data = content if isinstance(content, bytes) else content.encode()
        (root / f"{name}.{ending}").write_bytes(data)
    roles, _ = files.assign("here", files.find(root), {}, root=root)
    return tables.read(roles)


def only(root, content, ending="csv"):
    """Return the columns of one file, and the notes on it."""
    come = read(root, content, ending=ending)
    return come.splits["train"].to_dict(), come.notes


def column(cells):
    return "text,label\n" + "".join(f"Row {i}.,{cell}\n" for i, cell in enumerate(cells))


@pytest.mark.parametrize(
    ("train", "test", "dtype", "values"),
    [
        (["1", "-2", "0"], ["3"], "int64", [[1, -2, 0], [3]]),
        (["01", "02", "A1"], ["01"], "string", [["01", "02", "A1"], ["01"]]),
        (["1.50", "2"], ["02"], "string", [["1.50", "2"], ["02"]]),
        (["1", "2"], ["2.5"], "float64", [[1, 2], [2.5]]),
        (["0.5", "1e-3"], ["3"], "float64", [[0.5, 0.001], [3]]),
        (["None", "NA"], ["null", "True", "nan"], "string", [["None", "NA"], ["null", "True", "nan"]]),
        (["+1", "-1"], ["+1"], "string", [["+1", "-1"], ["+1"]]),
        (["", ""], ["", "7"], "int64", [[None, None], [None, 7]]),
        (["9223372036854775808", "1"], ["2"], "string", [["9223372036854775808", "1"], ["2"]]),
        ([" 1", "0 "], ["1"], "int64", [[1, 0], [1]]),
        (["1", "nan"], ["-inf", "0.5"], "float64", [[1, None], [-math.inf, 0.5]]),
        (["1", "1e20"], ["3"], "float64", [[1, 1e20], [3]]),
        (["nan", "inf"], ["nan"], "string", [["nan", "inf"], ["nan"]]),
    ],
)
def test_types_are_those_of_all_files_together(tmp_path, train, test, dtype, values):
    come = read(tmp_path / "csv", column(train), "text,label\n", column(test))
    for split, expected in zip(("train", "test"), values, strict=True):
        assert come.splits[split].features["label"].dtype == dtype
        assert come.splits[split]["label"][:] == expected


@pytest.mark.parametrize(
    ("train", "test", "values"),
    [
        ([True, False], [None], [[True, False], [None]]),
        ([True, 1], ["no"], [["true", "1"], ["no"]]),
        ([2**64, 1], [2], [[str(2**64), "1"], ["2"]]),
        ([["a", "b"], None], [[]], [[["a", "b"], None], [[]]]),
        ([[1, 2]], [["3"], [True]], [[["1", "2"]], [["3"], ["true"]]]),
        ([{"a": 1}, 2], [[3]], [[{"json": '{"a": 1}'}, {"json": "2"}], [{"json": "[3]"}]]),
    ],
)
def test_json_keeps_what_was_written(tmp_path, train, test, values):
    lines = ["".join(json.dumps({"label": value}) + "\n" for value in cells) for cells in (train, [], test)]
    come = read(tmp_path / "json", *lines, ending="jsonl")
    found = [come.splits[split]["label"][:] for split in ("train", "test")]
    assert repr(found) == repr(values)  # 1, 1.0 and True are not the same here


def test_parquet_has_one_type_over_splits_too(tmp_path):
    train = {"n": [1, 0], "code": [1, 2], "none": [None, None], "kind": ["x", "y"]}
    test = {"n": [1.0, None], "code": ["03", "4"], "none": ["a", None], "kind": ["x", "z"]}
    pd.DataFrame(train).astype({"kind": "category"}).to_parquet(tmp_path / "train.parquet")
    pd.DataFrame(test).to_parquet(tmp_path / "test.parquet")
    splits = read(tmp_path).splits
    assert splits["train"].to_dict() == train | {"code": ["1", "2"]}
    assert splits["test"].to_dict() == test
    for name in ("n", "code", "none"):
        assert splits["train"].features[name] == splits["test"].features[name]


LONG = "a" * 200_000


@pytest.mark.parametrize(
    ("ending", "content", "texts", "note"),
    [
        ("tsv", 'text\tlabel\n"a\tx\nb\ty\n"c\tx\n', ['"a', "b", '"c'], "quotes are text"),
        ("tsv", 'text\tlabel\n"a" he said\tx\nb\ty\n', ['"a" he said', "b"], "quotes are text"),
        # Closed by a later one: it would swallow a row.
        ("tsv", 'text\tlabel\n"a\tx\nb 5"\ty\n', ['"a', 'b 5"'], "quotes are text"),
        ("tsv", 'text\tlabel\n"a ""b"" c"\tx\nd\ty\n', ['a "b" c', "d"], "quotes enclose fields"),
        ("tsv", 'text\tlabel\n"a\tb"\tx\nc\ty\n', ["a\tb", "c"], "quotes enclose fields"),
        ("tsv", '"text"\t"label"\n"c"\t"x"\n', ["c"], "quotes enclose fields"),
        ("csv", 'text,label\n"a\n\nb",x\n', ["a\n\nb"], "fields that hold line breaks: 1"),
        (
            "csv",
            '"text","""n"\n"a, b\nc",1\n',
            {"text": ["a, b\nc"], '"n': [1]},
            "fields that hold line breaks: 1",
        ),
        ("csv", 'text,label\n"a,x\nb,y\n', ['"a', "b"], "quotes are text"),
        ("csv", "text;label\nYes, no;x\n", ["Yes, no"], "separated by ';'"),
        ("csv", "\ufefftext , label\na,x", ["a"], ""),
        ("csv", "text,label\ra,x\rb,y\r", ["a", "b"], ""),
        ("csv", "text,label,\na,x,\nb,y,\n", ["a", "b"], ""),
        ("csv", "0,1\na,0\nb,1\n", {"0": ["a", "b"], "1": [0, 1]}, ""),
        ("csv", ",text,of\n0,a,x\n1,b,y\n", {"column 1": [0, 1], "text": ["a", "b"], "of": ["x", "y"]}, ""),
        ("csv", "text,label\na\u2028b\x85c\x0bd,x\n", ["a\u2028b\x85c\x0bd"], ""),
        ("csv", f'text,label\n"{LONG}, ""b""",x\n', [f'{LONG}, "b"'], ""),
    ],
)
def test_delimited_files_as_they_are_written(tmp_path, ending, content, texts, note):
    columns, notes = only(tmp_path / "plain", content, ending)
    wanted = {"text": texts, "label": ["x", "y", "x"][: len(texts)]} if isinstance(texts, list) else texts
    assert columns == wanted
    assert notes[:1] == ((f"train.{ending}: {note}",) if note else ())
    for packed in (gzip.compress(content.encode()), content.encode("utf-16")):
        assert only(tmp_path / "packed", packed, ending)[0] == columns


@pytest.mark.parametrize(
    ("content", "ending", "message"),
    [
        ("a good day,1\na bad day,0\nlast,1\n", "csv", "a header line in train.csv, .* column with '1'"),
        ("s1\t1\t\tA.\ns1\t0\t\tB.\ns2\t0\t\tC.\ns2\t1\t\tD.\n", "tsv", "a header line in train.tsv"),
        ("text,spam\na,spam\nb,ham\nc,spam\nd,ham\n", "csv", "or where it is one rename that column"),
        ("text,label\na,x\ntext,label\nb,y\n", "csv", "one header line in train.csv, line 3 is the same"),
        ("text,label,text\na,x,b\n", "csv", "each column once in train.csv, got 'text' twice"),
        ("text,label\na,x\nb, c,y\n", "csv", "2 fields in line 3 of train.csv, .* got 3; .* holds ','"),
        ('label,text\na,b\nx,"Dear Sir\nBest, me"\n', "csv", "that read one way, in line 3"),
        ('text,label\n"a", he said,x\n"b" c,y\n', "csv", "to close it in train.csv, .* begins in line 3"),
        ("text,label\nb,x\ncaf\xe9,x\n".encode("latin-1"), "csv", "UTF-8 .* got byte 0xe9 in line 3"),
        ('{"text": "a"}\n{"text": \n', "jsonl", "JSON in line 2 of train.jsonl"),
        ('{"text": "a"}\n\n[1]\n', "jsonl", "an object of columns in line 3 of train.jsonl, got list"),
        ('{"train": [{"a": 1}], "test": [{"a": 1}]}', "json", "one object with 'train', 'test'; write"),
        ("{", "json", "wanted json in train.json, which cannot be read"),
        ('{"text": "cut: \\ud83d"}', "jsonl", "column 'text' of train.jsonl, got others .*surrogates"),
        ('{"\\ud83d": "cut", "text": "a"}', "jsonl", "of train.jsonl, got others .*surrogates"),
        ("EU B\na O O\nb O O\n", "txt", "3 columns in line 1 of train.txt, got 2"),
        ("it was good\tpos\n\nit was bad\tneg\n", "txt", "a word on each line .* got texts; .* named .tsv"),
        ("Great!\tpos\nit was good\tpos\nit was bad\tneg\n", "txt", "a word on each line .* got texts; "),
        ("\n\n", "bio", "sentences in train.bio, which has none"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(tmp_path, content, ending, message):
    assert ";" in refused(message, read, tmp_path / "bad", content, ending=ending).splitlines()[0]


def test_forms_of_json(tmp_path):
    rows = [{"text": "a", "label": "x"}, {"text": "b"}]
    for content in (
        json.dumps({"text": ["a", "b"], "label": ["x", None]}),
        json.dumps({"text": {"0": "a", "1": "b"}, "label": {"0": "x", "1": None}}),
        json.dumps({"text": {"0": "a", "1": "b"}, "label": {"1": None, "0": "x"}}),
        json.dumps({"text": {"0": "a", "1": "b"}, "label": {"0": "x"}}),
        "\n".join(map(json.dumps, rows)),
        "\ufeff" + json.dumps(rows, indent=1),
    ):
        assert only(tmp_path, content, "json")[0] == {"text": ["a", "b"], "label": ["x", None]}, content
    missing = json.dumps([{"text": "a", "label": "x"}, {"text": "b", "label": math.nan}])
    assert "NaN" in missing
    assert only(tmp_path, missing, "json")[0] == {"text": ["a", "b"], "label": ["x", None]}


PLAIN = "EU B-ORG\nrejects O\nit O\n\n# O\nPeter B-PER\n"


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        ("EU\tB-ORG\nrejects\tO\nit\tO\n \n#\tO\nPeter\tB-PER", []),
        ("EU B-ORG \nrejects  O\nit\t O\n\n\n\n# O\r\nPeter B-PER\r\n\r\n", []),
        ("\ufeff" + PLAIN.replace("\n", "\r"), []),
        ("# a\nEU B-ORG\nrejects O\nit O\n\n# b\n# O\nPeter B-PER\n\n", []),
        ("# id = 1\n# text = EU it\nEU B-ORG\nrejects O\nit O\n\n# id = 2\n# O\nPeter B-PER\n", []),
        ("-DOCSTART- O\n\n" + PLAIN.replace("# O", "-DOCSTART- O\n\n# O"), ["1", "2"]),
        (PLAIN.replace("\n\n", "\n-DOCSTART-\n"), ["0", "1"]),
    ],
)
def test_column_files(tmp_path, content, documents):
    words = {"0": [["EU", "rejects", "it"], ["#", "Peter"]], "1": [["B-ORG", "O", "O"], ["O", "B-PER"]]}
    for ending in ("conll", "txt"):
        come = read(tmp_path / ending, content, ending=ending)
        found = come.splits["train"].to_dict()
        assert found.pop("document", []) == [f"train.{ending} {number}" for number in documents]
        assert (found, come.columns) == (words, ("0", "1"))


def test_column_files_are_words_and_last_tags_unless_others_are_named(tmp_path):
    rows = "".join(f"w{i} {'NN' if i % 2 else 'VB'} X {'B-PER' if i % 3 else 'O'}\n\n" for i in range(30))
    for name in ("train.conll", "dev.conll"):
        (tmp_path / name).write_text(rows)
    task = load_task(str(tmp_path))
    assert (task.kind.name, task.label_names, task.reading.columns) == ("token", ("B-PER", "O"), ("0", "3"))
    assert task.splits["validation"].inputs[:2] == [["w0"], ["w1"]]
    other = load_task(str(tmp_path), text_column="0", label_column="1")
    assert (other.kind.name, other.label_names) == ("word", ("NN", "VB"))


def test_words_and_tags_of_column_files_are_what_is_written(tmp_path):
    content = "# text = EU rejects\n1\tEU\tB-ORG\n2\trejects\tO\n\n1\tIt\tO\n"
    assert read(tmp_path / "counted", content, ending="conllu").columns == ("1", "2")
    assert read(tmp_path / "0", content.translate({49: "0", 50: "1"}), ending="conll").columns == ("1", "2")
    assert read(tmp_path / "not", content.replace("2\tr", "3\tr"), ending="conll").columns == ("0", "2")
    universal = "\t".join(["1", "It", "it", "PRON", *"_____", "SpaceAfter=No"]) + "\n\n"
    assert read(tmp_path / "universal", universal * 2, ending="conllu").columns == ("1", "3")
    contracted = "1\tI\tO\n2-3\tdon't\t_\n2\tdo\tO\n3\tn't\tO\n3.1\tgo\tO\n\n1\tIt\tO\n"
    assert only(tmp_path / "contracted", contracted, "conllu")[0]["1"] == [["I", "do", "n't"], ["It"]]
    hashtags, _ = only(tmp_path / "hashtags", "#EU B-ORG\nis O\n\n#it O\nis O\n", "conll")
    assert hashtags["0"] == [["#EU", "is"], ["#it", "is"]]
    assert only(tmp_path / "empty", "EU\tORG\nrejects\t\n\nit\t\n\n", "conll")[0]["1"] == [["ORG", ""], [""]]
    assert only(tmp_path / "closed", "EU\tORG\t\nis\tO\t\n", "conll")[0]["1"] == [["ORG", "O"]]
    blanks, _ = only(tmp_path / "blanks", "10\xa0000 O\na\u3000b X\n\nc O\n", "conll")
    assert blanks["0"] == [["10\xa0000", "a\u3000b"], ["c"]]


def test_where_a_row_stands(tmp_path):
    for ending, content, places in (
        ("csv", 'text,label\na,x\n\n"b\nc",y\nd,z\n', ["line 2", "line 4", "line 6"]),
        ("jsonl", '{"a": 1}\n\n{"a": 2}\n', ["line 1", "line 3"]),
        ("conll", "-DOCSTART- O\n\na O\nb O\n\nc O\n", ["line 3", "line 6"]),
        ("json", '[{"a": 1}, {"a": 2}]', ["row 0", "row 1"]),
    ):
        come = read(tmp_path / ending, content, ending=ending)
        wanted = [f"{place} of train.{ending}" for place in places]
        assert [come.place("train", i) for i in range(len(places))] == wanted


def test_rows_are_named_as_in_the_file_after_validation_was_set_aside(tmp_path):
    for shard in range(2):
        lines = [json.dumps({"text": f"Row {i} of {shard}", "label": i % 2}) for i in range(30)]
        (tmp_path / f"train-0000{shard}-of-00002.jsonl").write_text("\n".join(lines))
    task = load_task(str(tmp_path), label_column="label", train_examples=20)
    for role, split in task.splits.items():
        for i, text in enumerate(split.inputs):
            _, row, _, shard = text.split()
            assert task.place(role, i) == f"line {int(row) + 1} of train-0000{shard}-of-00002.jsonl"


def test_a_missing_text_is_named_by_its_line_and_a_missing_column_by_its_file(tmp_path):
    named = {"text_column": "text", "label_column": "label"}
    (tmp_path / "train.csv").write_text(column(["x", "y"] * 20) + ",x\n")
    refused(r"in column 'text' of train.csv of .* got nothing in line 42", load_task, str(tmp_path), **named)
    (tmp_path / "train.csv").write_text(column(["x", "y"] * 20))
    (tmp_path / "test.csv").write_text(column(["x", "y"]).replace("text,label", "sentence,label"))
    refused(r"'text' in test.csv of .*, got sentence, label; .* test=none", load_task, str(tmp_path), **named)
