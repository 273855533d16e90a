"""Which file is which split: by name, as --splits says, or an error that names the files."""

import shlex

import pytest

from adalayers.tasks import files
from tests.helpers.loading import load_task
from tests.helpers.refusing import refused

ROWS = 40


def rows(first=0):
    return "text,label\n" + "".join(f"Row {i}.,{('no', 'yes')[i % 2]}\n" for i in range(first, first + ROWS))


def folder(root, names):
    """Write files, of rows of their own where their format is CSV, and return the folder."""
    for i, name in enumerate(names.split() if isinstance(names, str) else names):
        path = root / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows(100 * i) if ".csv" in name else "")
    return root / "mine"


def assigned(root, *splits):
    """Return the files of each role, and the titles of those without one with why."""
    roles, unused = files.assign("the folder", files.find(root), files.wanted(splits)[0], root=root)
    return {role: [file.name for file in source.files] for role, source in roles.items()}, unused


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("train", "train Train TRAIN trainset TrainSet train_set training my_train myTrain x-train"),
        ("train", "TrainingData en.train train2 wnut17train train_v2"),
        ("validation", "valid val dev devel DEV devset development ValidationSet"),
        ("test", "test Testing test1 eval evaluation_2 test-labelled TESTset"),
        (None, "data latest contest trainer value devtest train_test old"),
    ],
)
def test_the_role_that_a_name_says(role, names):
    for name in names.split():
        said = files.roles_in(name)
        assert (said.pop() if len(said) == 1 else None) == role, name


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        ("trainset.csv testset.csv", {"train": "trainset.csv", "test": "testset.csv"}),
        ("Train.CSV TEST.CSV.gz", {"train": "Train.CSV", "test": "TEST.CSV.gz"}),
        ("train/a.csv valid/b.csv", {"train": "train/a.csv", "validation": "valid/b.csv"}),
        ("train/test.csv train/train.csv", {"train": "train/train.csv", "test": "train/test.csv"}),
        ("e.train e.testa e.testb", {"train": "e.train", "validation": "e.testa", "test": "e.testb"}),
        ("reviews.csv README.md dataset_infos.json .hidden/train.csv", {"train": "reviews.csv"}),
        ("reviews.csv notes.txt labels.json", {"train": "reviews.csv"}),
        ("train.txt test.txt README.txt LICENSE.txt", {"train": "train.txt", "test": "test.txt"}),
    ],
)
def test_files_by_their_names(tmp_path, names, roles):
    assert assigned(folder(tmp_path, names))[0] == {role: [name] for role, name in roles.items()}


@pytest.mark.parametrize(
    ("names", "said", "advice"),
    [
        ("train.csv test1.csv test2.csv", "one test split .* test1.csv, test2.csv", "test=test1.csv"),
        ("train.csv eval.csv test.csv", "one test split .* eval.csv, test.csv", "test=eval.csv"),
        ("train.csv dev.csv val.csv", "one validation split .* dev.csv, val.csv", "validation=dev.csv"),
        ("en_train.csv de_train.csv en_test.csv", "one train split", "train=de_train.csv test=en_test.csv"),
        ("data/train.csv old/train.csv", "one train split .* data/train.csv, old/", "data/train.csv"),
        ("train/a.csv train/b.csv test.csv", "one train split .* train/a.csv, train/b.csv", "train=train "),
        ("a.csv dev.csv", "name of each file .* got a.csv", "train=a.csv validation=dev.csv"),
        ("a.csv b.csv", "name of each file .* got a.csv, b.csv", "train=FILE"),
        ("train.csv train.json", "one train split .* train.csv, train.json", "train=train.csv"),
        (r"my\ train.csv test_a.csv test_b.csv", "one test split", "train='my train.csv' test=test_a.csv"),
    ],
)
def test_what_is_not_plain_is_an_error_whose_advice_works(tmp_path, names, said, advice):
    where = folder(tmp_path, shlex.split(names))
    flag = refused(f"{said}.*; say which is which.*--splits ", assigned, where).partition("--splits ")[2]
    assert advice in f"{flag} "
    chosen = shlex.split(flag.replace("FILE", names.split()[0]))
    assert set(assigned(where, *chosen)[0]) == {item.partition("=")[0] for item in chosen}


@pytest.mark.parametrize("splits", ["train dev", "train train test", "train", "train x test", "a b"])
def test_a_file_of_which_a_column_says_the_split_is_refused(tmp_path, splits):
    names, columns = splits.split(), {"text_column": "text", "label_column": "label"}
    lines = [f"Row {i}.,{('no', 'yes')[i % 2]},{names[i % len(names)]}" for i in range(60)]
    (tmp_path / "all.csv").write_text("text,label,set\n" + "\n".join(lines))
    if splits in ("train dev", "train train test"):
        refused(r"rows of one split in all.csv .* column 'set' says", load_task, str(tmp_path), **columns)
    else:
        assert load_task(str(tmp_path), **columns).splits


def test_files_of_no_known_format_are_column_files_where_they_are_named(tmp_path):
    for name in ("first", "second.iob_tags"):
        (tmp_path / name).write_text("a O\nB B-X\n\n" * 10)
    task = load_task(str(tmp_path), splits=["train=first", "test=second.iob_tags"])
    assert (task.label_names, len(task.splits["test"])) == (("B-X", "O"), 10)


def test_shards_are_one_file_and_all_there_once(tmp_path):
    names = [f"data/train-0000{i}-of-00003-0a1b2c3d.csv" for i in range(3)]
    where = folder(tmp_path, [*names, "data/unsupervised-00000-of-00001.csv"])
    assert assigned(where) == ({"train": names}, ("data/unsupervised-00000-of-00001.csv (no role)",))
    task = load_task(str(where))
    assert task.reading.roles["train"] == f"{names[0]} to {names[2]} (3 files)"
    assert len(task.splits["train"]) + len(task.splits["validation"]) == 3 * ROWS
    (where / names[1]).unlink()
    missing = r"all 3 files of data/train, .* got train-00000-.*, train-00002-"
    flag = refused(missing, load_task, str(where)).partition("--splits ")[2]
    assert load_task(str(where), splits=[flag]).reading.roles["train"] == names[0]
    where = folder(tmp_path / "many", [f"train/part-{i}.csv" for i in (10, 2)])
    assert load_task(str(where), splits=["train=train"]).reading.roles["train"].startswith("train/part-2.csv")
    names = "train-00000-of-00001.csv train-00000-of-00002.csv train-00001-of-00002.csv"
    where = folder(tmp_path / "editions", names)
    refused(r"all 2 files of train, each once, .* add or remove some", load_task, str(where))


def test_names_of_splits_are_kept_where_there_are_such(tmp_path):
    names = ["train", "test", "test_hard", "unsupervised"]
    where = folder(tmp_path, [f"{name}-00000-of-00001.csv" for name in names])
    assert assigned(where)[1] == tuple(f"{name}-00000-of-00001.csv (no role)" for name in names[2:])
    (where / "test-00000-of-00001.csv").rename(where / "test_easy-00000-of-00001.csv")
    refused(r"test_easy-.*, test_hard-.*--splits train=train test=test_easy", assigned, where)


def test_another_format_than_the_data_is_named(tmp_path):
    where = folder(tmp_path, "train.csv dev.csv test.jsonl dev.json")
    roles, unused = assigned(where)
    assert roles == {"train": ["train.csv"], "validation": ["dev.csv"]}
    assert unused == ("dev.json (another format)", "test.jsonl (another format)")
    assert assigned(where, "test=test.jsonl", "train=train.csv")[0]["test"] == ["test.jsonl"]
    whole = assigned(folder(tmp_path / "two", "train.jsonl dev.jsonl train.csv"))
    assert whole == ({"train": ["train.jsonl"], "validation": ["dev.jsonl"]}, ("train.csv (another format)",))


def test_splits_as_they_are_asked_for(tmp_path):
    where = folder(tmp_path, "a/one.csv a/two.csv b.csv dev.csv c.csv")
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text(rows(900))
    assert assigned(where, "train=a", "test=b.csv") == (
        {"train": ["a/one.csv", "a/two.csv"], "validation": ["dev.csv"], "test": ["b.csv"]},
        ("c.csv (not in --splits)",),
    )
    assert assigned(where, "train=./a/", "validation=none")[0] == {"train": ["a/one.csv", "a/two.csv"]}
    for test, name in ((elsewhere, str(elsewhere)), (where / "c.csv", "c.csv")):
        assert assigned(where, "train=b.csv", f"test={test}")[0]["test"] == [name]
    task = load_task(str(where), splits=["train=a", "validation=25%", "test=b.csv"])
    assert [len(task.splits[role]) for role in ("train", "validation", "test")] == [60, 20, 40]
    assert [*task.reading.roles.values()] == ["a/one.csv, a/two.csv", "25% of train", "b.csv"]
    assert task.reading.unused == ("c.csv (not in --splits)", "dev.csv (not in --splits)")


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ("train", "wanted ROLE=FILE in --splits, got 'train'; write"),
        ("trian=a.csv", "unknown split in --splits 'trian'; did you mean 'train'"),
        ("train=a.csv train=b.csv", "wanted train once"),
        ("train=10%", "wanted a part of train as validation"),
        ("validation=100%", "write validation=10%"),
        ("train=none", "wanted split 'train' .* add it, or name it with --splits train=FILE"),
        ("train=aa.csv", "unknown name of a split .*'aa.csv'; did you mean 'a.csv'"),
        ("train=a.csv test=a.csv", "wanted another source for each split"),
        ("test=a.csv", "wanted split 'train' .* which has a.csv, b.csv.*; .* --splits train=FILE"),
        ("train=mixed", "wanted files of one format in .*mixed, got jsonl and csv; name one, mixed/FILE"),
    ],
)
def test_splits_that_cannot_be(tmp_path, splits, message):
    where = folder(tmp_path, "a.csv b.csv mixed/x.csv mixed/x.jsonl")
    assert ";" in refused(message, assigned, where, *splits.split()).splitlines()[0]
