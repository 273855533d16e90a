"""Flags: typed, checked, with the defaults of the command line filled in."""

from dataclasses import replace

import pytest

from adalayers.command.flags import SMOKE, Flags, parse
from adalayers.request import DataRequest, Resources, StudyRequest
from adalayers.study import Defaults, Flag
from studies import domain_gap
from tests.helpers.planning import BARE as STUDY
from tests.helpers.refusing import refused

TOKENS = replace(STUDY, task_kind="token")
SEVERAL = replace(STUDY, defaults=Defaults(backbones=("minilm", "random:minilm")))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADALAYERS_DATA", raising=False)
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))


def test_nothing_typed_gives_the_defaults(tmp_path):
    assert parse(STUDY, []) == Flags(
        requests=(DataRequest("minilm", "acceptability-demo"),),
        study=StudyRequest(search="optuna", scheduler="asha", trials=16, seeds=6, seed=0, epochs=20),
        resources=Resources(),
        own={},
        own_identity={},
        output="results",
        cache_dir=tmp_path / "cache",
        features="auto",
    )


def test_a_study_has_defaults_of_its_own():
    """Searches of a few trials each are not stopped early unless asked for; the metric is named by kind of task."""
    several = replace(STUDY, design=replace(STUDY.design, tunings=lambda setting: []))
    assert parse(several, []).study.scheduler == "fifo"
    assert parse(several, ["--scheduler", "asha"]).study.scheduler == "asha"
    named = replace(STUDY, defaults=Defaults(metrics={"sequence": "accuracy"}))
    (request,) = parse(named, []).requests
    assert (request.metric, request.metrics) == (None, (("sequence", "accuracy"),))
    assert parse(named, ["--metric", "matthews"]).requests[0].metric == "matthews"


def test_files_of_splits_are_named_from_the_datasets_folder_or_by_their_absolute_path(tmp_path):
    for name in ("mine/a.csv", "mine/b.csv", "b.csv", "c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = f"test={tmp_path}/c.csv train=b.csv validation=a.csv"
    for typed, named in (
        ("validation=mine/a.csv --splits train=b.csv test=c.csv", found),
        ("validation=10% --splits train=nowhere", "train=nowhere validation=10%"),
    ):
        (request,) = parse(STUDY, f"--dataset mine --splits {typed}".split()).requests
        assert " ".join(request.splits) == named


@pytest.mark.parametrize(
    ("study", "argv", "cases"),
    [
        (TOKENS, "", "minilm entities-demo"),
        (TOKENS, "--smoke", "minilm entities-demo"),
        (STUDY, "--backbone minilm", "minilm cola"),
        (STUDY, "--backbone a b --dataset x y", "a x, a y, b x, b y"),
        (STUDY, "--dataset x y --label-column m s", "minilm x m, minilm x s, minilm y m, minilm y s"),
        (SEVERAL, "", "minilm acceptability-demo, random:minilm acceptability-demo"),
        (SEVERAL, "--backbone a", "a cola"),
        (STUDY, "--dataset x y --backbone a --backbone b --dataset z", "a x, a y, a z, b x, b y, b z"),
    ],
)
def test_every_backbone_meets_every_dataset_and_every_label_column(study, argv, cases):
    """Also where a flag of several values is given more than once."""
    requests = parse(study, [*argv.split(), "--seed", "3", "--precision", "float32"]).requests
    named = [(each.backbone, each.dataset, each.label_column) for each in requests]
    assert ", ".join(" ".join(filter(None, names)) for names in named) == cases
    assert {(request.seed, request.precision) for request in requests} == {(3, "float32")}


def test_smoke_is_small_where_the_user_says_nothing():
    flags = parse(STUDY, ["--smoke", "--trials", "7"])
    (request,) = flags.requests
    of_study = flags.study
    assert (of_study.trials, of_study.seeds, of_study.epochs) == (7, SMOKE["seeds"], SMOKE["epochs"])
    assert (request.train_examples, request.max_length) == (SMOKE["train_examples"], SMOKE["max_length"])
    assert 0 < request.test_examples <= request.eval_examples <= SMOKE["eval_examples"]
    assert flags.label == "smoke"
    assert parse(STUDY, ["--smoke", "--label", "mine"]).label == "mine"
    small = Defaults(sizes={"trials": 0, "epochs": 9}, smoke={"seeds": 1})
    request = parse(replace(STUDY, defaults=small), ["--smoke", "--set", "epochs=3"]).study
    assert (request.trials, request.seeds, request.epochs) == (0, 1, 3)


def test_hyperparameters_are_typed_epochs_set_or_flagged_and_rates_in_order():
    typed = "--set k=128 --set positions=true --rates 1e-2 1e-3 1e-3"
    request = parse(STUDY, typed.split()).study
    assert (request.set, request.rates) == ({"k": 128, "positions": True}, (1e-3, 1e-2))
    for typed in ("--set epochs=3", "--set epochs=3 --epochs 3", "--epochs 3"):
        assert parse(STUDY, typed.split()).study.epochs == 3


def test_folders_are_resolved_at_start_and_may_be_named_by_the_environment(monkeypatch, tmp_path):
    def folders(*argv):
        flags = parse(STUDY, argv)
        return flags.requests[0].data_dir, flags.cache_dir

    typed = folders("--data-dir", "copies", "--cache-dir", "store")
    assert typed == (str(tmp_path / "copies"), tmp_path / "store")
    monkeypatch.setenv("ADALAYERS_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("ADALAYERS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folders() == (str(tmp_path / "data"), tmp_path / "xdg" / "adalayers")


def test_a_reference_may_lie_in_the_data_folder(tmp_path):
    """As `--dataset` may."""
    (tmp_path / "copies" / "reviews").mkdir(parents=True)
    argv = ["--dataset", "reviews", "--data-dir", str(tmp_path / "copies")]
    assert parse(domain_gap.STUDY, argv).own_identity == {"reference_dataset": "local:reviews"}
    refused("unknown dataset 'reviews'", parse, domain_gap.STUDY, argv[:2])


def test_a_flag_of_one_study_alone():
    how = {"default": lambda names: names[0], "canonical": lambda name, data_dir: name.upper()}
    study = replace(STUDY, flags=(Flag("reference-dataset", "What for", **how),))
    flags = parse(study, ["--dataset", "x", "y"])
    assert (flags.own, flags.own_identity) == ({"reference_dataset": "x"}, {"reference_dataset": "X"})
    given = parse(study, ["--dataset", "x", "y", "--reference-dataset", "z"])
    assert given.own_identity == {"reference_dataset": "Z"}
    refused("did you mean '--reference-dataset'", parse, study, ["--reference-datase", "z"])
    refused("unknown flag '--reference-dataset'", parse, STUDY, ["--reference-dataset", "z"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--rates 1e-3 0.001", "two --rates or more without --set lr, got .* 0.001 0.001"),
        ("--rates 1e-3 1e-2 --set lr=0.1", "got --rates 0.001 0.01 --set lr=0.1"),
        ("--rates 1e-3 0", "wanted --rates above 0 and finite, got 0"),
        ("--rates 1e-3 inf", "wanted --rates above 0 and finite, got inf"),
    ],
)
def test_rates_that_are_none_are_bad_input(given, said):
    refused(said, parse, STUDY, given.split())
