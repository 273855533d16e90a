"""Results as frames, and the tables made of them."""

import io
import json
import re
import shutil
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

import adalayers.results.files  # which leaves `adalayers.results` a function
from adalayers.errors import Unreachable
from adalayers.results.export import export
from adalayers.results.frames import StudyResults
from adalayers.storage.folder import Folder
from tests.helpers.documented import KEPT, RESULTS, ROOT, undocumented
from tests.helpers.golden import factorial
from tests.helpers.pages import rebuild_claims
from tests.helpers.refusing import refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "alpha_lambda" / "minilm-cola"
    made = factorial()
    made.history[0]["mix/weight_01"] = None  # of a search trial
    rebuild_claims(made.write(folder))
    return folder


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_frames_are_the_files_with_whose_rows_they_are_and_arms_those_of_the_page(folder):
    made, results = factorial(), adalayers.results(folder)
    assert results.study.request.metric == "matthews"
    assert results.report == f"{folder}/report.md"
    assert len(results.trials) == len(made.trials)
    written = json.loads((folder / "claims.json").read_text())
    assert results.claims["arm"].tolist() == [claim["arm"] for claim in written]
    history, whose = pd.read_parquet(folder / "history.parquet"), ["trial_id", "stage", "arm", "seed"]
    assert list(results.curves)[:7] == [*whose, "epoch", "step", "lr"]
    assert len(results.curves) == history["val/matthews"].notna().sum()
    assert len(results.weights) == history.filter(like="/weight_").notna().sum().sum()
    assert set(results.weights["state"]) == {f"{layer:02d}" for layer in range(1, made.layers + 1)}
    of_arm = results.weights[results.weights["arm"] == "uniform"]
    assert of_arm.groupby(["trial_id", "step"])["weight"].sum().to_numpy() == pytest.approx(1)
    assert len(results.predictions) == len(made.predictions)
    arm = results.arms.set_index("arm").loc["uniform"]
    scores = results.trials.query("arm == 'uniform' and status == 'completed'")["test/matthews"]
    assert (arm["metric"], arm["split"]) == ("matthews", "test")
    assert (arm["mean"], arm["n"]) == (pytest.approx(scores.mean()), 9)
    assert arm["low"] < arm["mean"] < arm["high"]
    assert re.search(r"minilm-cola: 15 arms.* \d+ better", repr(results))


def test_all_studies_are_one_frame_each(folder, tmp_path, monkeypatch, capsys):
    every, alone = adalayers.results(folder.parents[1]), adalayers.results(folder)
    shutil.copytree(folder, folder.parent / "minilm-cola.20260501-101112")  # set aside by --fresh
    later = adalayers.results(folder.parents[1])
    assert list(every.studies) == list(later.studies) == ["alpha_lambda/minilm-cola"]
    for name in ("arms", "trials", "claims", "curves", "weights", "predictions"):
        frame = getattr(every, name)
        assert list(frame)[:2] == ["study", "case"]
        assert len(frame) == len(getattr(alone, name))
    exists = Folder.exists

    def locked(place, name=""):
        if place.name == "minilm-cola.20260501-101112":
            raise PermissionError(13, "Permission denied")
        return exists(place, name)

    monkeypatch.setattr(Folder, "exists", locked)
    assert list(adalayers.results(folder.parents[1]).studies) == list(every.studies)
    assert "may not be read" in capsys.readouterr().err
    published = adalayers.results(RESULTS)
    assert len(published.studies) == len(KEPT)
    assert len(published.across)
    refused(r"found no study\.json", adalayers.results, folder / "figures")
    for root in ("a", "b"):
        shutil.copytree(folder.parent, tmp_path / root / "alpha_lambda")
    refused("wanted each study once, alpha_lambda/minilm-cola is in", adalayers.results, tmp_path)


def test_tables_for_a_paper(folder):
    results = adalayers.results(folder)
    zero = export(StudyResults("docs/results/alpha_lambda/minilm-conll2003-whole"), "latex")
    assert ("& $0.000$" in zero, "-0.000" in zero, "+0.000" in zero) == (True, False, False)
    latex = export(results, "latex")
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 3
    assert len(re.findall(r"\\\\$", latex, re.M)) == len(results.arms) + len(results.claims) + 3
    assert latex.count("interaction of") == results.claims["kind"].eq("interaction").sum() > 0
    assert "entropy\\_weight=0.001 vs.\\ 0 at alpha=8 " in latex
    assert "\\label{tab:alpha-lambda-minilm-cola-interactions}" in latex  # which no other study's has
    assert not re.search(r"[^\\][_%&]\w", latex.replace(" & ", " "))
    better = results.claims.query("verdict == 'better'").iloc[0]
    assert f"$[{better['low']:+.3f}, {better['high']:+.3f}]$ & $\\uparrow$" in latex
    wholes = results.claims[results.claims["kind"] == "omnibus"]
    assert len(wholes) == len(re.findall(r"as a whole & \d+ & -- & \$p [=<]", latex)) > 0
    arms, claims = (pd.read_csv(io.StringIO(table)) for table in export(results, "csv").split("\n\n"))
    assert (len(arms), len(claims)) == (len(results.arms), len(results.claims))
    tables = json.loads(export(results, "json"))
    assert tables["arms"][0]["mean"] == pytest.approx(results.arms["mean"].iloc[0])
    assert tables["arms"][0]["low"] == results.arms["low"].iloc[0], "to the last digit"
    assert len(tables["comparisons"]) == len(results.claims)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: "/".join(path.parts[-2:]))
def test_every_file_and_column_is_explained(kept):
    assert undocumented(kept) == []


def test_the_example_notebook_runs(monkeypatch):
    """Its cells of code, one after another, where it stands."""
    notebook = json.loads((ROOT / "docs" / "example.ipynb").read_text())
    monkeypatch.chdir(ROOT / "docs")
    monkeypatch.setattr(plt, "show", lambda: None)
    names: dict = {}
    with mpl.rc_context({"backend": "agg"}):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), "example.ipynb", "exec"), names)
    plt.close("all")
    assert len(names["trained"]) == len(names["untrained"]) == 12
    assert names["axes"].get_legend_handles_labels()[1][1:] == ["one layer, trained", "one layer, untrained"]


def test_claims_are_of_the_rows_and_not_of_an_older_page(copy):
    """What `trials.csv` holds now is judged: a study may have ended by force between its rows and its page."""
    trials = pd.read_csv(copy / "trials.csv", dtype=str, keep_default_na=False)
    trials[trials["seed"] != "9"].to_csv(copy / "trials.csv", index=False)
    results = adalayers.results(copy)
    assert results.claims["n"].max() == results.arms["n"].max() == 8
    written = [
        json.loads(export(results, "json"))["comparisons"],
        json.loads((copy / "claims.json").read_text()),
    ]
    assert [max(claim["n"] for claim in claims) for claims in written] == [8, 9]
    rebuild_claims(copy)
    again = pd.DataFrame(json.loads((copy / "claims.json").read_text()))
    pd.testing.assert_frame_equal(again, results.claims, check_dtype=False)


@pytest.mark.parametrize(("column", "cell"), [("val/matthews", "=1+1"), ("seed", "=1+1"), ("seed", "1e999")])
def test_a_score_or_seed_that_is_no_number_is_named(column, cell, copy):
    trials = pd.read_csv(copy / "trials.csv", dtype=str, keep_default_na=False)
    trials.loc[len(trials) - 1, column] = cell
    trials.to_csv(copy / "trials.csv", index=False)
    for read in (lambda results: results.trials, lambda results: results.arms):
        said = rf"{column} of trial {trials['trial_id'].iloc[-1]} is '{re.escape(cell)}', no number"
        refused(said, read, adalayers.results(copy))


def test_a_row_of_no_stage_and_a_store_that_does_not_answer_are_named(copy, monkeypatch):
    whole = (copy / "trials.csv").read_text()
    (copy / "trials.csv").write_text(whole.replace(",confirm,", ",,", 1))
    refused("trial .* has no stage", lambda: adalayers.results(copy).trials)
    (copy / "trials.csv").write_text(whole)
    silent = mock.Mock(side_effect=Unreachable("s3://x does not answer"))
    monkeypatch.setattr("reports.reading.load.read_study", silent)
    assert refused("not answer", lambda: adalayers.results(copy).claims) == "s3://x does not answer"


def test_a_file_of_rows_that_is_missing_has_none_and_one_that_is_damaged_is_named(copy):
    history = copy / "history.parquet"
    history.write_bytes(history.read_bytes()[:-99])
    refused(r"could not read history\.parquet in .*restore it", lambda: adalayers.results(copy).weights)
    history.unlink()
    weights = adalayers.results(copy).weights
    assert [*weights] == ["trial_id", "stage", "arm", "seed", "epoch", "step", "state", "weight"]
    assert weights.empty


def test_no_cell_of_text_is_a_formula_for_a_spreadsheet(copy):
    names = ["=cmd()", "+1", "-1", "@x", "a=b"]
    results = adalayers.results(copy)
    results.claims = results.claims.iloc[[0] * len(names)].assign(arm=names, difference=-0.1)
    table = pd.read_csv(io.StringIO(export(results, "csv").split("\n\n")[1]))
    assert table["arm"].tolist() == ["'=cmd()", "'+1", "'-1", "'@x", "a=b"]
    assert set(table["difference"]) == {-0.1}


def test_a_column_has_one_type_in_all_frames():
    results = adalayers.results(RESULTS / "single_layer" / "all-mpnet-base-v2-cola")
    shared = results.arms.columns.intersection(results.trials.columns)
    assert len(shared) > 2
    assert (results.arms[shared].dtypes == results.trials[shared].dtypes).all()
