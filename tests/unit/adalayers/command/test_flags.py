"""Flags: typed, checked, with the defaults of the command line filled in."""

import dataclasses

import pytest

from adalayers.command.flags import SMOKE, Flags, parse
from adalayers.errors import BadInput
from adalayers.request import DataRequest, Resources, StudyRequest
from adalayers.study import Defaults, Design, Flag, Study

STUDY = Study(name="made", question="Why?", design=Design(arms=lambda setting: ([], [])))
TOKENS = dataclasses.replace(STUDY, task_kind="token")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADALAYERS_DATA", raising=False)
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))


def test_nothing_typed_gives_the_defaults(tmp_path):
    assert parse(STUDY, []) == Flags(
        requests=(DataRequest("minilm", "acceptability-demo"),),
        study=StudyRequest(
            search="optuna", scheduler="asha", trials=16, seeds=6, seed=0, until_decided=False, epochs=20
        ),
        resources=Resources(),
        own={},
        own_identity={},
        output="results",
        cache_dir=tmp_path / "cache",
        features="auto",
    )


def test_searches_of_a_few_trials_each_are_not_stopped_early_unless_asked_for():
    several = dataclasses.replace(
        STUDY, design=Design(arms=lambda setting: ([], []), tunings=lambda setting: [])
    )
    assert parse(several, []).study.scheduler == "fifo"
    assert parse(several, ["--scheduler", "asha"]).study.scheduler == "asha"


def test_a_study_names_the_score_that_selects_by_kind_of_task():
    named = dataclasses.replace(STUDY, defaults=Defaults(metrics={"sequence": "accuracy"}))
    (request,) = parse(named, []).requests
    assert (request.metric, request.metrics) == (None, (("sequence", "accuracy"),))
    assert parse(named, ["--metric", "matthews"]).requests[0].metric == "matthews"


def test_files_of_splits_are_named_from_the_datasets_folder_or_by_their_absolute_path(tmp_path):
    for name in ("mine/a.csv", "mine/b.csv", "b.csv", "c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    typed = ["validation=mine/a.csv", "train=b.csv", "test=c.csv"]
    (request,) = parse(STUDY, ["--dataset", "mine", "--splits", *typed]).requests
    assert request.splits == (f"test={tmp_path}/c.csv", "train=b.csv", "validation=a.csv")
    (request,) = parse(
        STUDY, ["--dataset", "mine", "--splits", "validation=10%", "--splits", "train=nowhere"]
    ).requests
    assert request.splits == ("train=nowhere", "validation=10%")


SEVERAL = dataclasses.replace(STUDY, defaults=Defaults(backbones=("minilm", "random:minilm")))


@pytest.mark.parametrize(
    ("study", "argv", "cases"),
    [
        (STUDY, "", ["minilm acceptability-demo"]),
        (TOKENS, "", ["minilm entities-demo"]),
        (TOKENS, "--smoke", ["minilm entities-demo"]),
        (STUDY, "--backbone minilm", ["minilm cola"]),
        (STUDY, "--backbone a b --dataset x y", ["a x", "a y", "b x", "b y"]),
        (STUDY, "--dataset x --label-column mood", ["minilm x mood"]),
        (
            STUDY,
            "--dataset x y --label-column mood stars",
            ["minilm x mood", "minilm x stars", "minilm y mood", "minilm y stars"],
        ),
        (SEVERAL, "", ["minilm acceptability-demo", "random:minilm acceptability-demo"]),
        (SEVERAL, "--backbone a", ["a cola"]),
    ],
)
def test_every_backbone_meets_every_dataset_and_every_label_column(study, argv, cases):
    requests = parse(study, argv.split()).requests
    named = [(each.backbone, each.dataset, each.label_column) for each in requests]
    assert [" ".join(filter(None, names)) for names in named] == cases


def test_all_cases_have_the_flags_of_data():
    requests = parse(STUDY, ["--dataset", "x", "y", "--seed", "3", "--precision", "float32"]).requests
    assert [(request.seed, request.precision) for request in requests] == [(3, "float32")] * 2


def test_smoke_is_small_where_the_user_says_nothing():
    flags = parse(STUDY, ["--smoke", "--trials", "7"])
    (request,) = flags.requests
    asked = flags.study
    assert (asked.trials, asked.seeds, asked.epochs) == (7, SMOKE["seeds"], SMOKE["epochs"])
    assert (request.train_examples, request.max_length) == (SMOKE["train_examples"], SMOKE["max_length"])
    assert 0 < request.test_examples <= request.eval_examples <= SMOKE["eval_examples"]
    assert flags.label == "smoke"
    assert parse(STUDY, ["--smoke", "--label", "mine"]).label == "mine"
    small = dataclasses.replace(
        STUDY, defaults=Defaults(sizes={"trials": 0, "epochs": 9}, smoke={"seeds": 1})
    )
    asked = parse(small, ["--smoke", "--set", "epochs=3"]).study
    assert (asked.trials, asked.seeds, asked.epochs) == (0, 1, 3)


@pytest.mark.parametrize(
    "argv", [["--set", "epochs=3"], ["--set", "epochs=3", "--epochs", "3"], ["--epochs", "3"]], ids=str
)
def test_epochs_may_be_set_or_flagged(argv):
    assert parse(STUDY, argv).study.epochs == 3


def test_fixed_hyperparameters_are_typed():
    fixed = parse(STUDY, ["--set", "k=128", "--set", "positions=yes"]).study.set
    assert fixed == {"k": 128, "positions": True}


def test_relative_folders_are_resolved_at_start(tmp_path):
    flags = parse(STUDY, ["--data-dir", "copies", "--cache-dir", "store"])
    assert flags.requests[0].data_dir == str(tmp_path / "copies")
    assert flags.cache_dir == tmp_path / "store"


def test_the_environment_names_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("ADALAYERS_DATA", str(tmp_path / "data"))
    assert parse(STUDY, []).requests[0].data_dir == str(tmp_path / "data")
    monkeypatch.delenv("ADALAYERS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert parse(STUDY, []).cache_dir == tmp_path / "xdg" / "adalayers"


def test_a_flag_of_one_study_alone():
    flag = Flag("reference-dataset", "What for", default=lambda names: names[0], canonical=str.upper)
    study = dataclasses.replace(STUDY, flags=(flag,))
    flags = parse(study, ["--dataset", "x", "y"])
    assert (flags.own, flags.own_identity) == ({"reference_dataset": "x"}, {"reference_dataset": "X"})
    given = parse(study, ["--dataset", "x", "y", "--reference-dataset", "z"])
    assert given.own_identity == {"reference_dataset": "Z"}
    with pytest.raises(BadInput, match="did you mean '--reference-dataset'"):
        parse(study, ["--reference-datase", "z"])
    with pytest.raises(BadInput, match="unknown flag '--reference-dataset'"):
        parse(STUDY, ["--reference-dataset", "z"])


def test_rates_are_several_in_order_and_say_what_study_it_is():
    assert parse(STUDY, ["--rates", "1e-2", "1e-3", "1e-3"]).study.rates == (1e-3, 1e-2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--rates", "1e-3", "0.001"], "wanted two --rates or more without --set lr, got .* 0.001 0.001"),
        (["--rates", "1e-3", "1e-2", "--set", "lr=0.1"], "got --rates 0.001 0.01 and --set lr=0.1"),
        (["--rates", "1e-3", "0"], "wanted --rates above 0 and finite, got 0"),
        (["--rates", "1e-3", "inf"], "wanted --rates above 0 and finite, got inf"),
        (["--rates"], "expected at least one argument"),
    ],
)
def test_rates_that_are_none_are_bad_input(given, said):
    with pytest.raises(BadInput, match=said):
        parse(STUDY, given)
