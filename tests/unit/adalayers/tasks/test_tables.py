"""What stands in data files is what is read: types over all splits, quotes, headers, lines, encodings, formats."""

import gzip
import json

import datasets
import pandas as pd
import pytest

from adalayers.errors import BadInput
from adalayers.tasks import files, tables
from adalayers.tasks.task import load_task

NAMES = ("train", "validation", "test")


def read(root, *contents, ending="csv"):
    """Write a file for each split, and return them as they are read."""
    root.mkdir(exist_ok=True)
    for name, content in zip(NAMES, contents, strict=False):
        data = content if isinstance(content, bytes) else content.encode()
        (root / f"{name}.{ending}").write_bytes(data)
    roles, _ = files.assign("here", files.find(root), files.wanted(()), root=root)
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
        (["01", "02"], ["01"], "string", [["01", "02"], ["01"]]),
        (["1", "2"], ["A1"], "string", [["1", "2"], ["A1"]]),
        (["1", "2"], ["02"], "string", [["1", "2"], ["02"]]),
        (["1", "0"], ["1.0", "0.0"], "int64", [[1, 0], [1, 0]]),
        (["1", "2"], ["2.5"], "float64", [[1, 2], [2.5]]),
        (["0.5", "1e-3"], ["3"], "float64", [[0.5, 0.001], [3]]),
        (["1.0", "2.0"], ["1.0"], "float64", [[1, 2], [1]]),
        (["True", "False"], ["True"], "string", [["True", "False"], ["True"]]),
        (["None", "NA"], ["null", "n/a", "nan"], "string", [["None", "NA"], ["null", "n/a", "nan"]]),
        (["+1", "-1"], ["+1"], "string", [["+1", "-1"], ["+1"]]),
        (["1", ""], ["", ""], "int64", [[1, None], [None, None]]),
        (["a", ""], ["", ""], "string", [["a", None], [None, None]]),
        (["", ""], ["", "7"], "int64", [[None, None], [None, 7]]),
        (["9223372036854775808", "1"], ["2"], "string", [["9223372036854775808", "1"], ["2"]]),
        (["123456789012345678", "1"], ["2"], "int64", [[123456789012345678, 1], [2]]),
        ([" 1", "0 "], ["1"], "int64", [[1, 0], [1]]),
        (["2020-01-02", "x"], ["2020-01-03"], "string", [["2020-01-02", "x"], ["2020-01-03"]]),
    ],
)
def test_types_are_those_of_all_files_together(tmp_path, train, test, dtype, values):
    come = read(tmp_path / "csv", column(train), "text,label\n", column(test))
    for split, expected in zip(("train", "test"), values, strict=True):
        assert come.splits[split].features["label"].dtype == dtype
        assert come.splits[split]["label"][:] == expected


@pytest.mark.parametrize(
    ("train", "test", "dtype", "values"),
    [
        ([1, 2], [3], "int64", [[1, 2], [3]]),
        ([1, 0], [1.0, None], "int64", [[1, 0], [1, None]]),
        ([1, 2], [2.5], "float64", [[1, 2], [2.5]]),
        ([1, 2], ["3"], "string", [["1", "2"], ["3"]]),
        ([True, False], [None], "bool", [[True, False], [None]]),
        ([True, 1], ["no"], "string", [["true", "1"], ["no"]]),
        (["None", "NA"], [None], "string", [["None", "NA"], [None]]),
        (["2020-01-02"], ["2020-01-03T00:00:00"], "string", [["2020-01-02"], ["2020-01-03T00:00:00"]]),
        ([2**64, 1], [2], "string", [[str(2**64), "1"], ["2"]]),
        ([["a", "b"], None], [[]], None, [[["a", "b"], None], [[]]]),
        ([[1, 2]], [["3"], [True]], None, [[["1", "2"]], [["3"], ["true"]]]),
        ([{"a": 1}, 2], [[3]], None, [[{"json": '{"a": 1}'}, {"json": "2"}], [{"json": "[3]"}]]),
    ],
)
def test_json_keeps_what_was_written(tmp_path, train, test, dtype, values):
    lines = ["".join(json.dumps({"label": value}) + "\n" for value in cells) for cells in (train, [], test)]
    come = read(tmp_path / "json", *lines, ending="jsonl")
    for split, expected in zip(("train", "test"), values, strict=True):
        assert dtype in (None, getattr(come.splits[split].features["label"], "dtype", None))
        assert come.splits[split]["label"][:] == expected


def test_parquet_has_one_type_over_splits_too(tmp_path):
    train = {"n": [1, 0], "code": [1, 2], "none": [None, None], "kind": ["x", "y"]}
    test = {"n": [1.0, None], "code": ["03", "4"], "none": ["a", None], "kind": ["x", "z"]}
    pd.DataFrame(train).astype({"kind": "category"}).to_parquet(tmp_path / "train.parquet")
    pd.DataFrame(test).to_parquet(tmp_path / "test.parquet")
    roles, _ = files.assign("here", files.find(tmp_path), files.wanted(()), root=tmp_path)
    splits = tables.read(roles).splits
    assert splits["train"].to_dict() == train | {"code": ["1", "2"]}
    assert splits["test"].to_dict() == test
    for name in ("n", "code", "none"):
        assert splits["train"].features[name] == splits["test"].features[name]


TSV = "text\tlabel\n"


@pytest.mark.parametrize(
    ("rows", "texts", "note"),
    [
        ("a\tx\nb\ty\n", ["a", "b"], None),
        ('"a\tx\nb\ty\n"c\tx\n', ['"a', "b", '"c'], "quotes are text"),
        ('"a" he said\tx\nb\ty\n', ['"a" he said', "b"], "quotes are text"),
        ('"a"\tx\nb\ty\n', ['"a"', "b"], "quotes are text"),
        ('"a\tx\nb 5"\ty\n', ['"a', 'b 5"'], "quotes are text"),  # closed by a later one: would swallow a row
        ('"a ""b"" c"\tx\nd\ty\n', ['a "b" c', "d"], "quotes enclose fields"),
        ('"a\tb"\tx\nc\ty\n', ["a\tb", "c"], "quotes enclose fields"),
        ('"a\nb"\tx\nc\ty\n', ["a\nb", "c"], "quotes enclose fields"),
        ('a ""b"" c\tx\n"d"\ty\n', ['a ""b"" c', '"d"'], "quotes are text"),
    ],
)
def test_quotes_of_a_tsv_file(tmp_path, rows, texts, note):
    columns, notes = only(tmp_path / "tsv", TSV + rows, "tsv")
    assert columns["text"] == texts
    assert columns["label"] == ["x", "y", "x"][: len(texts)]
    assert notes[:1] == (() if note is None else (f"train.tsv: {note}",))


def test_quotes_of_a_tsv_file_whose_header_has_them_enclose_fields(tmp_path):
    quoted_header = '"text"\t"label"\n"c"\t"x"\n'
    assert only(tmp_path / "tsv", quoted_header, "tsv")[0] == {"text": ["c"], "label": ["x"]}


@pytest.mark.parametrize(
    ("content", "columns", "note"),
    [
        ('text,label\n"a, ""b""",x\n', {"text": ['a, "b"'], "label": ["x"]}, ""),
        ('text,label\n"a\n\nb",x\n', {"text": ["a\n\nb"], "label": ["x"]}, "fields that hold line breaks: 1"),
        ('text,label\n"a,x\nb,y\n', {"text": ['"a', "b"], "label": ["x", "y"]}, "quotes are text"),
        ('text,label\n"a,x\nb 5",y\n', {"text": ['"a', 'b 5"'], "label": ["x", "y"]}, "quotes are text"),
        ("text;label\nYes, no;x\n", {"text": ["Yes, no"], "label": ["x"]}, "separated by ';'"),
        ("text\tlabel\nYes, no\tx\n", {"text": ["Yes, no"], "label": ["x"]}, "separated by '\\t'"),
        ("text|label\na|x\n", {"text": ["a"], "label": ["x"]}, "separated by '|'"),
        ("\ufefftext,label\na,x\n", {"text": ["a"], "label": ["x"]}, ""),
        ("text,label\r\na,x\r\n\r\nb,y\r\n", {"text": ["a", "b"], "label": ["x", "y"]}, ""),
        ("text,label\ra,x\rb,y\r", {"text": ["a", "b"], "label": ["x", "y"]}, ""),
        ("text,label\na,x", {"text": ["a"], "label": ["x"]}, ""),
        (" text , label\na,x\n", {"text": ["a"], "label": ["x"]}, ""),
        ("text,label,\na,x,\nb,y,\n", {"text": ["a", "b"], "label": ["x", "y"]}, ""),
        (",text,label\n0,a,x\n1,b,y\n", {"column 1": [0, 1], "text": ["a", "b"], "label": ["x", "y"]}, ""),
        ("0,1\na,0\nb,1\n", {"0": ["a", "b"], "1": [0, 1]}, ""),
        ("text,0,1\na,0,5\nb,1,6\n", {"text": ["a", "b"], "0": [0, 1], "1": [5, 6]}, ""),
        ("text\na\n\nb\n", {"text": ["a", "b"]}, ""),
        ("text,label\na\u2028b\x85c\x0bd,x\n", {"text": ["a\u2028b\x85c\x0bd"], "label": ["x"]}, ""),
        ("text,label\n", {"text": [], "label": []}, ""),
        (f"text,label\n{'a' * 200_000},x\n", {"text": ["a" * 200_000], "label": ["x"]}, ""),
    ],
)
def test_csv_files_as_they_are_written(tmp_path, content, columns, note):
    come, notes = only(tmp_path / "csv", content)
    assert come == columns
    assert note in "".join(notes)
    assert bool(note) == bool(notes)
    for packed in (gzip.compress(content.encode()), content.encode("utf-16")):
        assert only(tmp_path / "packed", packed)[0] == columns


@pytest.mark.parametrize(
    ("content", "ending", "message"),
    [
        ("", "csv", "header line and rows in train.csv, which is empty; fill it"),
        ("a good day,1\na bad day,0\nlast,1\n", "csv", "a header line in train.csv, .* column with '1'"),
        ("s1\t1\t\tA.\ns1\t0\t\tB.\ns2\t0\t\tC.\ns2\t1\t\tD.\n", "tsv", "a header line in train.tsv"),
        ("some text,0.5\nother,0.7\n", "csv", "a header line in train.csv, .* with '0.5'"),
        ("text,label\na,x\ntext,label\nb,y\n", "csv", "one header line in train.csv, line 3 is the same"),
        ("text,label,text\na,x,b\n", "csv", "each column once in train.csv, got 'text' twice"),
        ("text,label\na,x\nb, c,y\n", "csv", "2 fields in line 3 of train.csv, .* got 3; .* holds ','"),
        ("text,label\na,x\nb\n", "csv", "2 fields in line 3 of train.csv, .* got 1"),
        ('text,label\n"a", he said,x\n"b" c,y\n', "csv", "to close it in train.csv, .* begins in line 3"),
        ('text,label\n"a\nb,x\n', "csv", "to close it in train.csv, .* begins in line 2"),
        ("text,label\nb,x\ncaf\xe9,x\n".encode("latin-1"), "csv", "UTF-8 .* got byte 0xe9 in line 3"),
        ('{"text": "a"}\n{"text": \n', "jsonl", "JSON in line 2 of train.jsonl"),
        ('{"text": "a"}\n\n[1]\n', "jsonl", "an object of columns in line 3 of train.jsonl, got list"),
        ('{"train": [{"a": 1}], "test": [{"a": 1}]}', "json", "one object with 'train', 'test'; write"),
        ("[1, 2]", "json", "an object of columns in row 0 of train.json, got int"),
        ("{", "json", "wanted JSON in train.json"),
        ("another\nday\n", "txt", "2 columns in line 1 of train.txt, got 1; a column"),
        ("EU B\na O O\nb O O\n", "txt", "3 columns in line 1 of train.txt, got 2"),
        ("a\tO\nb\tB\n\nc\tO\nd\tB\n\ne\tO\n", "tsv", "a header line .* an empty line .* is called .conll"),
        ("text,spam\na,spam\nb,ham\nc,spam\nd,ham\n", "csv", "or where it is one rename that column"),
        ("it was good\tpos\n\nit was bad\tneg\n", "txt", "a word on each line .* got texts; .* named .tsv"),
        ("\n\n", "bio", "sentences in train.bio, which has none"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(tmp_path, content, ending, message):
    with pytest.raises(BadInput, match=message) as caught:
        read(tmp_path / "bad", content, ending=ending)
    assert ";" in str(caught.value).splitlines()[0]


RECORDS = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(RECORDS),
        json.dumps({"version": 1, "data": RECORDS}),
        json.dumps({"text": ["a", "b"], "label": ["x", "y"]}),
        json.dumps({"text": {"0": "a", "1": "b"}, "label": {"0": "x", "1": "y"}}),
        "\n".join(map(json.dumps, RECORDS)),
        "\ufeff" + json.dumps(RECORDS, indent=1),
    ],
)
def test_forms_of_json(tmp_path, content):
    assert only(tmp_path / "json", content, "json")[0] == {"text": ["a", "b"], "label": ["x", "y"]}


def test_keys_that_some_rows_lack_are_missing_values(tmp_path):
    assert only(tmp_path / "j", '{"a": 1}\n{"b": "x"}\n', "jsonl")[0] == {"a": [1, None], "b": [None, "x"]}


SENTENCES = [["EU", "rejects", "it"], ["#", "Peter"]]
TAGS = [["B-ORG", "O", "O"], ["O", "B-PER"]]


@pytest.mark.parametrize(
    ("content", "extra"),
    [
        ("EU B-ORG\nrejects O\nit O\n\n# O\nPeter B-PER\n", {}),
        ("EU\tB-ORG\nrejects\tO\nit\tO\n \n#\tO\nPeter\tB-PER", {}),
        ("EU B-ORG \nrejects  O\nit\t O\n\n\n\n# O\r\nPeter B-PER\r\n\r\n", {}),
        ("\ufeffEU B-ORG\nrejects O\nit O\n\n# O\nPeter B-PER\n\n", {}),
        ("# id 1 domain\nEU B-ORG\nrejects O\nit O\n\n# id 2 domain\n# O\nPeter B-PER\n\n", {}),
        ("# a\nEU B-ORG\nrejects O\nit O\n\n# b\n# O\nPeter B-PER\n\n", {}),
        ("EU B-ORG\rrejects O\rit O\r\r# O\rPeter B-PER\r", {}),
        ("EU\tB-ORG\t\nrejects\tO\t\nit\tO\t\n\n#\tO\t\nPeter\tB-PER\t\n", {}),
        ("# made by me\n\nEU B-ORG\nrejects O\nit O\n\n# O\nPeter B-PER\n", {}),
        ("# id = 1\n# text = EU it\nEU B-ORG\nrejects O\nit O\n\n# id = 2\n# O\nPeter B-PER\n", {}),
        (
            "-DOCSTART- O\n\nEU B-ORG\nrejects O\nit O\n\n-DOCSTART- O\n\n# O\nPeter B-PER\n",
            {"document": [1, 2]},
        ),
        ("EU B-ORG\nrejects O\nit O\n-DOCSTART-\n# O\nPeter B-PER\n", {"document": [0, 1]}),
    ],
)
@pytest.mark.parametrize("ending", ["conll", "txt", "bio", "iob"])
def test_column_files(tmp_path, content, extra, ending):
    come = read(tmp_path / "columns", content, ending=ending)
    documents = {column: [f"train.{ending} {number}" for number in of] for column, of in extra.items()}
    assert come.splits["train"].to_dict() == {"0": SENTENCES, "1": TAGS} | documents
    assert come.columns == ("0", "1")


def test_column_files_are_words_and_last_tags_unless_others_are_named(tmp_path):
    rows = "".join(f"w{i} {'NN' if i % 2 else 'VB'} X {'B-PER' if i % 3 else 'O'}\n\n" for i in range(30))
    (tmp_path / "mine").mkdir()
    for name in ("train.conll", "dev.conll"):
        (tmp_path / "mine" / name).write_text(rows)
    task = load_task(str(tmp_path / "mine"))
    assert (task.kind.name, task.label_names, task.reading.columns) == ("token", ("B-PER", "O"), ("0", "3"))
    assert task.splits["validation"].inputs[:2] == [["w0"], ["w1"]]
    other = load_task(str(tmp_path / "mine"), text_column="0", label_column="1")
    assert (other.kind.name, other.label_names) == ("word", ("NN", "VB"))


def test_a_column_that_counts_words_is_not_the_words(tmp_path):
    content = "# text = EU rejects\n1\tEU\tB-ORG\n2\trejects\tO\n\n1\tIt\tO\n"
    assert read(tmp_path / "counted", content, ending="conllu").columns == ("1", "2")
    assert read(tmp_path / "not", content.replace("2\tr", "3\tr"), ending="conll").columns == ("0", "2")


def test_sentences_that_begin_with_hashtags_have_no_comments(tmp_path):
    columns, _ = only(tmp_path / "c", "#EU B-ORG\nis O\n\n#it O\nis O\n", "conll")
    assert columns["0"] == [["#EU", "is"], ["#it", "is"]]


def test_an_empty_tag_of_a_column_file_is_a_tag(tmp_path):
    assert only(tmp_path / "c", "EU\tORG\nrejects\t\n\nit\t\n\n", "conll")[0]["1"] == [["ORG", ""], [""]]


def test_words_hold_what_is_no_blank_or_tab(tmp_path):
    columns, _ = only(tmp_path / "c", "10\xa0000 O\na\u3000b X\n\nc O\n", "conll")
    assert columns["0"] == [["10\xa0000", "a\u3000b"], ["c"]]


@pytest.mark.parametrize(
    ("content", "ending", "places"),
    [
        ('text,label\na,x\n\n"b\nc",y\nd,z\n', "csv", ["line 2", "line 4", "line 6"]),
        ('{"a": 1}\n\n{"a": 2}\n', "jsonl", ["line 1", "line 3"]),
        ("-DOCSTART- O\n\na O\nb O\n\nc O\n", "conll", ["line 3", "line 6"]),
        ('[{"a": 1}, {"a": 2}]', "json", ["row 0", "row 1"]),
    ],
)
def test_where_a_row_stands(tmp_path, content, ending, places):
    come = read(tmp_path / "places", content, ending=ending)
    expected = [f"{place} of train.{ending}" for place in places]
    assert [come.places["train"].of(i) for i in range(len(places))] == expected


def test_rows_are_named_as_in_the_file_after_validation_was_set_aside(tmp_path):
    lines = [json.dumps({"text": f"Row {i}.", "label": i % 2}) for i in range(60)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    task = load_task(str(tmp_path), label_column="label", train_examples=20)
    for role, split in task.splits.items():
        for i, text in enumerate(split.inputs):
            assert task.place(role, i) == f"line {int(text[4:-1]) + 1} of train.jsonl"


def test_a_missing_text_is_named_by_its_line(tmp_path):
    (tmp_path / "train.csv").write_text(column(["x", "y"] * 20) + ",x\n")
    with pytest.raises(BadInput, match=r"in column 'text' of train.csv of .* got nothing in line 42"):
        load_task(str(tmp_path), text_column="text", label_column="label")


@pytest.mark.parametrize("value", ["", "all the same"])
def test_a_column_of_one_value_or_none_is_neither_text_nor_label(tmp_path, value):
    rows = "".join(f"Row {i}.,{value},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "train.csv").write_text(f"text,note,label\n{rows}")
    assert load_task(str(tmp_path)).reading.columns == ("text", "label")


def test_words_beside_tags_are_plain(tmp_path):
    rows = [{"id": str(i), "tokens": [f"w{i}", "is", f"v{i}"], "tags": ["B-X", "O", "O"]} for i in range(30)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = load_task(str(tmp_path))
    assert (task.kind.name, task.reading.columns) == ("token", ("tokens", "tags"))


def test_words_and_tags_of_which_either_could_be_the_other_are_proposed(tmp_path):
    rows = [{"tokens": ["Ann", "ran"], "tags": ["B-X", "O"]} for _ in range(30)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(BadInput, match="; try --text-column tokens --label-column tags; --text-column tags"):
        load_task(str(tmp_path))


def test_a_test_file_whose_texts_have_another_name_is_not_left_out(tmp_path):
    (tmp_path / "train.csv").write_text(column(["x", "y"] * 20))
    (tmp_path / "test.csv").write_text(column(["x", "y"]).replace("text,label", "sentence,label"))
    with pytest.raises(BadInput, match=r"'text' in test.csv of .*, got sentence, label; .* test=none"):
        load_task(str(tmp_path))


def test_splits_saved_to_disk_one_by_one(tmp_path):
    for name, n in (("train", 40), ("test", 10)):
        rows = {"text": [f"Row {i}." for i in range(n)], "label": [i % 2 for i in range(n)]}
        datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "mine" / name))
    task = load_task(str(tmp_path / "mine"), label_column="label")
    assert [len(task.splits[role]) for role in ("train", "validation", "test")] == [36, 4, 10]
