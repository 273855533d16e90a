"""Results as frames, and the tables made of them."""

import io
import json
import re
import shutil
import subprocess

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

import adalayers.results.files  # which leaves `adalayers.results` a function
from adalayers.errors import BadInput
from adalayers.results.export import export
from adalayers.results.frames import StudyResults
from tests.helpers.documented import ROOT, undocumented
from tests.helpers.golden import factorial
from tests.helpers.pages import rebuild_claims

KEPT = sorted((ROOT / "docs" / "results").glob("*/*/study.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "alpha_lambda" / "minilm-cola"
    rebuild_claims(factorial().write(folder))
    return folder


def test_frames_are_the_files_with_whose_rows_they_are(folder):
    made, results = factorial(), adalayers.results(folder)
    assert isinstance(results, StudyResults)
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
    assert (results.predictions["stage"] == "confirm").all()


def test_arms_are_those_of_the_page(folder):
    results = adalayers.results(folder)
    arm = results.arms.set_index("arm").loc["uniform"]
    scores = results.trials.query("arm == 'uniform' and status == 'completed'")["test/matthews"]
    assert (arm["mean"], arm["n"]) == (pytest.approx(scores.mean()), 9)
    assert arm["low"] < arm["mean"] < arm["high"]
    assert "minilm-cola: 15 arms" in repr(results)
    assert re.search(r"\d+ better", repr(results))
    assert results._repr_html_().count("<table") == 2


def test_all_studies_are_one_frame_each(folder):
    every, alone = adalayers.results(folder.parents[1]), adalayers.results(folder)
    assert list(every.studies) == ["alpha_lambda/minilm-cola"]
    for name in ("arms", "trials", "claims", "curves", "weights", "predictions"):
        frame = getattr(every, name)
        assert list(frame)[:2] == ["study", "case"]
        assert len(frame) == len(getattr(alone, name))
    published = adalayers.results(ROOT / "docs" / "results")
    assert len(published.studies) == len(KEPT)
    assert len(published.across)
    with pytest.raises(BadInput, match=r"found no study\.json"):
        adalayers.results(folder / "figures")


def test_studies_of_one_name_are_not_taken_for_one(folder, tmp_path):
    for root in ("a", "b"):
        shutil.copytree(folder.parent, tmp_path / root / "alpha_lambda")
    with pytest.raises(BadInput, match="wanted each study once, alpha_lambda/minilm-cola is in"):
        adalayers.results(tmp_path)


def test_tables_for_a_paper(folder):
    results = adalayers.results(folder)
    latex = export(results, "latex")
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 3
    assert len(re.findall(r"\\\\$", latex, re.M)) == len(results.arms) + len(results.claims) + 3
    assert latex.count("interaction of") == results.claims["kind"].eq("interaction").sum() > 0
    assert "entropy\\_weight=0.001 vs.\\ 0 at alpha=8 " in latex
    assert "\\label{tab:alpha-lambda-minilm-cola-interactions}" in latex  # which no other study's has
    assert r"entropy\_weight" in latex
    assert not re.search(r"[^\\][_%&]\w", latex.replace(" & ", " "))
    better = results.claims.query("verdict == 'better'").iloc[0]
    assert f"$[{better['low']:+.3f}, {better['high']:+.3f}]$ & $\\uparrow$" in latex
    arms, claims = export(results, "csv").split("\n\n")
    assert len(pd.read_csv(io.StringIO(arms))) == len(results.arms)
    assert len(pd.read_csv(io.StringIO(claims))) == len(results.claims)
    tables = json.loads(export(results, "json"))
    assert tables["arms"][0]["mean"] == pytest.approx(results.arms["mean"].iloc[0])
    assert len(tables["comparisons"]) == len(results.claims)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_tables_of_two_studies_are_one_document(folder, tmp_path):
    tables = [export(adalayers.results(place), "latex") for place in (folder, KEPT[0].parent)]
    head = r"\documentclass{article}\usepackage{array,booktabs}\begin{document}"
    (tmp_path / "paper.tex").write_text("\n".join([head, *tables, r"\end{document}"]))
    compiled = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):  # the second knows the labels of the first
        subprocess.run(compiled, cwd=tmp_path, check=True, capture_output=True)
    assert not re.search(r"Warning|Overfull|Underfull", (tmp_path / "paper.log").read_text())


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_every_file_and_column_is_explained(kept):
    assert undocumented(kept.parent) == []


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
    assert len(names["trained"]) == len(names["untrained"]) == 6
    assert names["axes"].get_legend_handles_labels()[1][1:] == ["one layer, trained", "one layer, untrained"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda claims: {"a": 1}, r"claims\.json: Input should be"),
        (lambda claims: ["x"], r"claims\.json\[0\]: Input should be"),
        (lambda claims: [*claims[:2], {**claims[2], "n": "many"}], r"claims\.json\[2\]\.n"),
        (lambda claims: [{**claims[0], "difference": [1]}], r"claims\.json\[0\]\.difference"),
        (lambda claims: [{**claims[0], "verdict": 3}], r"claims\.json\[0\]\.verdict"),
        (lambda claims: [{name: claims[0][name] for name in ("arm", "difference")}], r"claims\.json\[0\]\."),
        (lambda claims: None, "claims.json"),
    ],
)
def test_damaged_claims_are_one_message(change, said, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "claims.json").write_text(json.dumps(change(json.loads((copy / "claims.json").read_text()))))
    for read in (lambda r: r.claims, repr, lambda r: export(r, "latex"), lambda r: export(r, "csv")):
        with pytest.raises(BadInput, match=rf"could not read claims\.json in .*{said}.*; rebuild it with"):
            read(adalayers.results(copy))


@pytest.mark.parametrize("column", ["val/matthews", "test/matthews", "seed"])
def test_a_score_that_is_no_number_is_named(column, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    trials = pd.read_csv(copy / "trials.csv", dtype=str, keep_default_na=False)
    place = trials.index[trials["stage"] == "confirm"][1]
    trials.loc[place, column] = "=1+1"
    trials.to_csv(copy / "trials.csv", index=False)
    said = rf"{column} of trial {trials.loc[place, 'trial_id']} is '=1\+1', no number"
    for read in (lambda r: r.trials, lambda r: r.arms, lambda r: export(r, "csv")):
        with pytest.raises(BadInput, match=said):
            read(adalayers.results(copy))


def test_no_cell_of_text_is_a_formula_for_a_spreadsheet(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    claims = json.loads((copy / "claims.json").read_text())
    for claim, arm in zip(claims, ["=cmd()", "+1", "-1", "@x", "a=b"], strict=False):
        claim["arm"] = arm
    (copy / "claims.json").write_text(json.dumps(claims))
    results = adalayers.results(copy)
    table = pd.read_csv(io.StringIO(export(results, "csv").split("\n\n")[1]))
    assert table["arm"].head(5).tolist() == ["'=cmd()", "'+1", "'-1", "'@x", "a=b"]
    pd.testing.assert_series_equal(table["difference"], results.claims["difference"])
    assert (table["difference"] < 0).any()


def test_a_notebook_is_shown_a_bounded_table(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    claims = json.loads((copy / "claims.json").read_text())
    (copy / "claims.json").write_text(json.dumps([{**claims[0], "arm": "x" * 5000}] * 5000))
    shown = adalayers.results(copy)._repr_html_()
    assert len(shown) < 100_000
    assert "and 4,940 more rows" in shown


def test_a_column_has_one_type_in_all_frames():
    for folder in ("single_layer/minilm-cola", "capacity/minilm-conll2003"):
        results = adalayers.results(ROOT / "docs" / "results" / folder)
        shared = results.arms.columns.intersection(results.trials.columns)
        assert len(shared) > 2
        assert (results.arms[shared].dtypes == results.trials[shared].dtypes).all(), folder
