"""The page, the claims file and the command, from files alone."""

import dataclasses
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from adalayers.comparisons import PlannedArm, pair
from adalayers.results import files as results
from adalayers.results.measures import write_references
from adalayers.results.study_file import RequestRecord
from reports import write_report
from reports.__main__ import main
from reports.evidence.claims import ENTROPY, FIELDS
from reports.evidence.evidence import Evidence
from reports.page.next_run import _minutes, changed
from reports.page.scores import _grid
from reports.publish import publish
from reports.reading.load import load
from reports.render import with_article
from studies import few_shot
from tests.helpers.golden import GOLDEN, PAGES, written
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import both_pages, evidence_of, page
from tests.helpers.refusing import refused
from tests.helpers.studying import without_figures

OTHER = "alpha=8 entropy_weight=0"
OUTSIDE = "uniform"
SMALL = {"seeds": 2, "search": 0, "evaluations": 2}


@pytest.fixture
def undrawn() -> Iterator[None]:
    with without_figures():
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with its whole report: not to be changed."""
    folder = tmp_path_factory.mktemp("built")
    write_report(MadeUp(failed=((OTHER, 2),), search=14).write(folder))  # enough for importances
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Return what a report is made of: path below the folder -> bytes."""
    paths = [path for path in folder.rglob("*.*") if path.suffix in (".md", ".json", ".svg", ".png")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def claims(folder: Path) -> dict[tuple[str, str], dict]:
    """Return the claims of a results folder by arm and level of the other factor, as they are written."""
    return {claim.names[::2]: claim.as_json() for claim in Evidence(load(folder)).claims}


def test_pages_are_those_of_the_evidence_and_links_lead_to_figures(built):
    text, rest = ((built / name).read_text() for name in ("report.md", "details.md"))
    assert text == page(Evidence(load(built)))
    links = re.findall(r"\]\((figures/[^)]+)\)", text + rest)
    assert {path.stem for path in (built / "figures").iterdir()} == {Path(link).stem for link in links}
    assert all((built / link).stat().st_size > 0 for link in links)
    assert "[report.md](report.md)" in rest


def test_claims_files(tmp_path, undrawn):
    write_report(MadeUp(seeds=6, effects={OUTSIDE: 0.3}).write(tmp_path))
    written, contrasts = (json.loads(files(tmp_path)[name]) for name in ("claims.json", "contrasts.json"))
    found = {(claim["arm"], claim["at"]): claim for claim in written if claim["kind"] != "omnibus"}
    assert found == claims(tmp_path)
    assert len(written) == len(found) + 3  # the factors as wholes
    assert all(tuple(claim) == FIELDS for claim in [*written, *contrasts])
    assert found[OUTSIDE, ""]["verdict"] == "better"
    assert {claim["metric"] for claim in contrasts} == {"mix/entropy", "convergence_step"}


def test_no_difference_next_to_what_is_open_is_said(tmp_path):
    """Without a headline and a compared factor: of two pairs one is decided."""
    made = MadeUp(seeds=8)
    planned = [dataclasses.asdict(pair(arm, made.study["request"]["control"])) for arm in (OUTSIDE, "last")]
    made.study["request"] |= {"comparisons": planned, "smallest_effect": 0.05}
    for row in made.of("last"):
        row["test/matthews"] += 0.1 * (-1) ** row["seed"]
    said = r"No difference is shown: 1 of 2 comparisons lie within 0\.05 .*, the other within 0\.1\d+\."
    assert re.search(said, page(Evidence(load(made.write(tmp_path)))))


def test_edited_rows_are_reported_and_the_disagreement_named(tmp_path):
    place = MadeUp(seeds=3).write(tmp_path)
    frame = results.read_trials(place)
    frame = frame[(frame["arm"] != OTHER) | (frame["seed"] != 3)]
    frame = frame.drop(columns=["mix/entropy", "config/mix_lr", "parameters", "seconds", "best_epoch"])
    frame.assign(note="by hand").to_csv(tmp_path / results.TRIALS, index=False)
    assert "the rows are what is reported" in both_pages(Evidence(load(place)))
    n = {key: claim["n"] for key, claim in claims(tmp_path).items()}
    assert (n["alpha=8", "entropy_weight=0"], n["alpha=8", ""], n["alpha=64", ""]) == (2, 2, 3)


def test_a_study_without_references_has_no_row_for_scale(tmp_path):
    place = MadeUp(**SMALL).write(tmp_path)
    assert "for scale" in page(Evidence(load(place))).lower()
    write_references(place, {}, {})
    assert "for scale" not in page(Evidence(load(place))).lower()


def test_half_a_character_ends_in_a_page_and_a_number_beyond_all_floats_is_named(tmp_path, undrawn):
    made = MadeUp(**SMALL)
    made.study["environment"]["packages"] = {"transformers": "\ud800"}
    write_report(made.write(tmp_path))
    assert (tmp_path / "report.md").read_text().startswith("# ")
    made.study["environment"]["dataset"]["distribution"] = {"validation": {"yes": 10**400, "no": 3}}
    refused(r"study\.json.*401 digits", write_report, made.write(tmp_path))


PROGRAM = """import runpy, socket, sys
def refuse(*args, **kwargs): raise OSError('no network in this test')
socket.socket.connect = refuse
sys.argv = ['reports', sys.argv[1]]
try: runpy.run_module('reports', run_name='__main__')
except SystemExit as end: code = end.code
heavy = {'torch', 'ray', 'transformers', 'mlflow', 'datasets'}
print(code, sorted(heavy & {name.split('.')[0] for name in sys.modules}))
"""


def test_the_command_gives_the_same_bytes_and_needs_neither_torch_nor_network(built, tmp_path):
    first = files(built)
    own = {"report.md", "details.md", "claims.json", "contrasts.json", "study.json"}
    assert {name for name in first if "/" not in name} == own
    assert sum(name.startswith("figures/") for name in first) > 10
    folder = Path(shutil.copytree(built, tmp_path / built.name))
    for path in [*folder.glob("*.md"), *folder.glob("figures/*")]:
        path.unlink()
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(folder / "report.md"), "0 []"]
    assert files(folder) == first


@pytest.mark.parametrize(("name", "text"), [(results.STUDY, 100_000 * "["), (results.TRIALS, "a,b\n1,2\n")])
def test_a_broken_file_or_folder_is_a_message_and_exit_code_2(tmp_path, capsys, name, text):
    assert main([str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: wanted a results folder, found no study.json in or below")
    MadeUp(seeds=1).write(tmp_path)
    (tmp_path / name).write_text(text)
    assert main([str(tmp_path)]) == 2
    assert "could not read" in capsys.readouterr().err


@pytest.mark.parametrize("name", [results.HISTORY, results.PREDICTIONS])
def test_a_damaged_file_of_rows_costs_its_parts_as_a_missing_one_does(tmp_path, undrawn, name):
    MadeUp(**SMALL).write(tmp_path, best=False)
    before, path = claims(tmp_path), tmp_path / name
    path.write_bytes(path.read_bytes()[:-99])
    (tmp_path / "measures.json").write_text('{"shared": ')
    headings = []
    for what in ("damaged", "missing"):
        assert main([str(tmp_path)]) == 0
        text = (tmp_path / "report.md").read_text() + (tmp_path / "details.md").read_text()
        assert f"`{name}` is {what}; what depends on it is left out" in text
        assert "`best/`, the best model, is missing" in text
        assert "`measures.json` is damaged; what depends on it is left out (" in text
        headings.append([line for line in text.splitlines() if line.startswith("#")])
        assert claims(tmp_path) == before  # trials.csv is what claims rest on
        path.unlink(missing_ok=True)
    assert headings[0] == headings[1]


def test_what_is_wrong_with_one_study_does_not_keep_others_from_their_reports(tmp_path, capsys, undrawn):
    root = tmp_path / "alpha_lambda"
    made = MadeUp(**SMALL)
    for name in ("minilm-cola", "cut-off", "no-object"):
        made.write(root / name)
    made.study["runs"]["state"] = "interrupted"
    made.write(root / "minilm-cola.20260501-101112")
    trials = root / "cut-off" / results.TRIALS
    trials.write_bytes(trials.read_bytes()[:-9])
    (root / "no-object" / results.STUDY).write_text("[")
    assert main([str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert str(root / "minilm-cola" / "report.md") in printed.out.splitlines()
    errors = [re.match("could not read .*restore the file", line) for line in printed.err.splitlines()]
    assert (len(errors), all(errors)) == (2, True)
    cover = (root / "report.md").read_text()
    assert "(<minilm-cola/report.md>)" in cover
    assert cover.count("could not read") == 2
    assert main([str(root / "minilm-cola")]) == 0
    assert (root / "report.md").read_text() == cover, "of all cases, though one was named"


def test_trials_of_a_search_that_failed_or_diverged_are_counted_on_its_page(tmp_path):
    made = MadeUp(search=9, stopped=2)
    done = [row for row in made.trials if (row["stage"], row["status"]) == ("search", "completed")]
    for row, status in zip(done, ("failed", "diverged", "failed"), strict=False):
        row["status"] = status
    assert re.search(
        r"\d+ trials completed, 2 stopped early, 1 diverged, 2 failed; its best",
        page(evidence_of(made, tmp_path)),
    )


# Pages word for word; `python -m tests.helpers.golden` writes them again


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_it_said(tmp_path, name):
    assert written(name, tmp_path) == (GOLDEN / f"{name}.md").read_text(), "see tests/helpers/golden.py"


# What is published: the page with its figures, the claims, and what both are rebuilt from


def test_a_grid_over_two_conditions_has_all_its_cells():
    factors, names = few_shot.STUDY.design.factors, ("fusion", "train_examples", "epochs")
    at = [*itertools.product(("DWAtt", "concat"), (80, 40), (8, 4))]
    cells = pd.DataFrame(at, columns=[f"config/{name}" for name in names])
    cells = cells.assign(mean=range(8), entropy=math.nan)
    cells["arm"] = [" ".join(map(str, levels)) for levels in at]
    arms = tuple(PlannedArm(name, label=name.split()[0]) for name in cells["arm"])
    evidence = {"request": RequestRecord(arms=arms, factors=factors), "grid": cells, "grid_factors": factors}
    rows = dict(_grid(SimpleNamespace(**evidence, environment=SimpleNamespace(hidden_states=[])))["rows"])
    assert {*rows} == {f"{method}, {epochs} epochs" for method in ("DWAtt", "concat") for epochs in (8, 4)}
    assert sorted(cell["mean"] for row in rows.values() for cell in row) == [*range(8)]


def test_what_the_page_does_not_read_goes(tmp_path):
    """Of predictions the test split, and scores where wrong; of history evaluations, and weights of a mix."""
    predictions, history = tmp_path / "predictions.parquet", tmp_path / "history.parquet"
    (tmp_path / "best").mkdir()
    given = "best/model.safetensors claims.json trials.csv details.md contrasts.json examples.md"
    for name in given.split():
        (tmp_path / name).touch()
    (tmp_path / "report.md").write_text("# A study\n")
    records = {"dataset": {"path": "/home/someone/cola"}, "backbone": {"path": "/home/cola", "id": "minilm"}}
    document = {"environment": records, "runs": {}, "request": {"metric": "f1"}}
    (tmp_path / "study.json").write_text(json.dumps(document))
    rows = {
        "trial_id": "t",
        "split": ["val", "test", "test"],
        "index": [0, 1, 0],
        "score": [0.5, 0.7, 0.98765],
    }
    answers = {"label": [["O"], ["O", "X"], ["X"]], "prediction": [["O"], ["O", "X"], ["O"]]}
    pd.DataFrame({**rows, **answers}).to_parquet(predictions)
    points = {"step": [5, 10, 10, 5], "val/f1": [None, 0.5, None, None], "gamma": [1.0, 1.0, 1.0, None]}
    pd.DataFrame({**points, "mix/weight_01": [None, None, None, 0.2]}).to_parquet(history)
    publish(tmp_path)
    left = "claims.json history.parquet predictions.parquet report.md study.json trials.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == left.split()
    study = json.loads((tmp_path / "study.json").read_text())
    assert [record["path"] for record in study["environment"].values()] == ["cola", "cola"]
    assert study["runs"] == {"published": True}
    kept = pd.read_parquet(predictions)
    assert kept["split"].tolist() == ["test", "test"]
    assert kept["score"].fillna(0).tolist() == [0.99, 0], "by example"
    assert len(pd.read_parquet(history)) == 2
    # A score of ranks follows from all scores; where there is no test split, validation is compared.
    document["request"]["metric"] = "auroc"
    (tmp_path / "study.json").write_text(json.dumps(document))
    pd.DataFrame({**rows, **answers}).assign(split="val").to_parquet(predictions)
    publish(tmp_path)
    assert pd.read_parquet(predictions)["score"].tolist() == [0.5, 0.98765, 0.7]


def test_the_next_run_trains_longer_or_the_arms_of_what_is_open():
    command = "python studies/capacity.py --set k=8 epochs=6 --label a"
    longer = changed(command, epochs="24", label="longer")
    assert longer == "python studies/capacity.py --set k=8 --epochs 24 --label a-longer"
    assert changed("x --set epochs=6 --seeds 6", epochs="24") == "x --seeds 6 --epochs 24"
    rows = pd.DataFrame({"trial_id": ["t1", "t2"], "arm": ["a", "b"], "seconds": [60.0, 600.0]})
    rows = rows.assign(stage="confirm", status="completed", seed=1)
    evidence = SimpleNamespace(trials=rows)
    assert [_minutes(evidence, 3, arms=arms) for arms in (None, {"a"})] == [22.0, 2.0]


def test_entropies_are_of_mixes_of_the_same_hidden_states(tmp_path):
    made = MadeUp(**SMALL)
    assert evidence_of(made, tmp_path / "alike").grid["entropy"].notna().all()
    made.study["request"]["arms"][1]["config"]["hidden_states"] = "upper-half"
    other = evidence_of(made, tmp_path / "others")
    assert other.grid["entropy"].isna().all()
    of_cells = [claim for claim in other.contrasts if claim.metric == ENTROPY]
    assert not any(made.study["request"]["arms"][1]["name"] in claim.arms for claim in of_cells)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("learned mix", "the learned mix"),
        ("last layer, k = 64, projections = 2", "the last layer with k = 64, projections = 2"),
        ("layer 8, k = 64", "layer 8 with k = 64"),
        ("α = 1, λ = 0", "the arm with α = 1, λ = 0"),
        ("k = 64", "the arm with k = 64"),
        ("α = 64 instead of 1", "α = 64 instead of 1"),
    ],
)
def test_an_arm_in_a_sentence_is_called_by_its_words_or_its_settings(name, called):
    assert with_article(name) == called
