"""The page, the claims file and the command, from files alone."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from adalayers.errors import BadInput
from adalayers.results import files as results
from adalayers.results.measures import write_references
from reports import write_report
from reports.__main__ import main
from reports.evidence.claims import FIELDS
from reports.evidence.evidence import Evidence
from reports.reading.load import load
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import both_pages, details, evidence_of, page, section
from tests.helpers.studying import without_figures

OTHER = "alpha=8 entropy_weight=0"
OUTSIDE = "uniform"
HEAVY = ("torch", "ray", "transformers", "mlflow", "datasets")


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
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".md", ".json", ".svg", ".png")
    }


def pages(evidence: Evidence) -> tuple[str, str]:
    return page(evidence), details(evidence)


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
    made = MadeUp(seeds=6, effects={OUTSIDE: 0.3})
    write_report(made.write(tmp_path))
    written = {name: json.loads((tmp_path / name).read_text()) for name in ("claims.json", "contrasts.json")}
    found = {(claim["arm"], claim["at"]): claim for claim in written["claims.json"]}
    assert {key: one for key, one in found.items() if one["kind"] != "omnibus"} == claims(tmp_path)
    assert len(found) == 31 + 3  # the factors as wholes
    assert all(tuple(claim) == FIELDS for claim in [*found.values(), *written["contrasts.json"]])
    judged_together = {
        (claim["primary"], claim["kind"] == "omnibus"): claim["comparisons"] for claim in found.values()
    }
    assert judged_together == {(True, False): 8, (False, False): 23, (False, True): 3}
    assert {claim["control"] for claim in found.values() if claim["kind"] == "arm"} == {CONTROL}
    assert sum(claim["primary"] for claim in found.values()) == 8
    assert found[OUTSIDE, ""]["verdict"] == "better"
    assert {claim["metric"] for claim in written["contrasts.json"]} == {"mix/entropy", "convergence_step"}


def test_few_seeds_are_shown_one_by_one_in_place_of_an_interval(tmp_path):
    made = MadeUp(seeds=4, search=0)
    arms = section(both_pages(evidence_of(made, tmp_path)), "Arms")
    scores = ", ".join(f"{trial['test/matthews']:.3f}" for trial in made.of(OTHER))
    assert f"| {scores} |" in next(line for line in arms.splitlines() if line.startswith(f"| `{OTHER}` |"))


def test_missing_files_are_named_not_raised(tmp_path):
    place = MadeUp().write(tmp_path, best=False)
    before = claims(tmp_path)
    (tmp_path / results.HISTORY).unlink()
    (tmp_path / results.PREDICTIONS).unlink()
    text = page(Evidence(load(place)))
    for name in ("history.parquet", "predictions.parquet", "best/"):
        assert re.search(f"`{name}`.* missing", text)
    assert claims(tmp_path) == before  # trials.csv is what claims rest on


def test_edited_rows_are_reported_and_the_disagreement_named(tmp_path):
    place = MadeUp(seeds=3).write(tmp_path)
    frame = results.read_trials(place)
    gone = (frame["arm"] == OTHER) & (frame["seed"] == 3)
    results.write_trials(place, frame[~gone].to_dict("records"))
    assert "the rows are what is reported" in page(Evidence(load(place)))
    assert claims(tmp_path)["alpha=8", "entropy_weight=0"]["n"] == 2
    assert claims(tmp_path)["alpha=8", ""]["n"] == 2
    assert claims(tmp_path)["alpha=64", ""]["n"] == 3


def test_extra_and_missing_columns(tmp_path):
    place = MadeUp().write(tmp_path)
    frame = pd.read_csv(tmp_path / results.TRIALS)
    frame = frame.drop(columns=["mix/entropy", "config/mix_lr", "parameters", "seconds", "best_epoch"])
    frame.assign(note="by hand").to_csv(tmp_path / results.TRIALS, index=False)
    assert all(text.startswith("# ") for text in pages(Evidence(load(place))))


def test_a_study_without_references_has_no_row_for_scale(tmp_path):
    place = MadeUp(seeds=2, search=0, evaluations=2).write(tmp_path)
    assert "for scale" in page(Evidence(load(place))).lower()
    write_references(place, {}, {})
    assert "for scale" not in page(Evidence(load(place))).lower()


def test_half_a_character_ends_in_a_page_and_a_number_beyond_all_floats_is_named(tmp_path, undrawn):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    made.study["environment"]["packages"] = {"transformers": "\ud800"}
    write_report(made.write(tmp_path))
    assert (tmp_path / "report.md").read_text().startswith("# ")
    made.study["environment"]["dataset"]["distribution"] = {"validation": {"yes": 10**400, "no": 3}}
    with pytest.raises(BadInput, match=r"study\.json.*401 digits"):
        write_report(made.write(tmp_path))


def test_the_command_gives_the_same_bytes_and_needs_neither_torch_nor_network(built, tmp_path):
    first = files(built)
    assert {name for name in first if "/" not in name} == {
        *("report.md", "details.md", "claims.json", "contrasts.json", "study.json")
    }
    assert sum(name.startswith("figures/") for name in first) > 10
    folder = tmp_path / built.name
    shutil.copytree(built, folder)
    for path in [*folder.glob("*.md"), *folder.glob("figures/*")]:
        path.unlink()
    program = (
        "import runpy, socket, sys\n"
        "def refuse(*args, **kwargs): raise OSError('no network in this test')\n"
        "socket.socket.connect = refuse\n"
        f"sys.argv = ['reports', '--html', {str(folder)!r}]\n"
        "try: runpy.run_module('reports', run_name='__main__')\n"
        "except SystemExit as end: code = end.code\n"
        "names = {name.split('.')[0] for name in sys.modules}\n"
        f"print(code, sorted(names & set({HEAVY!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    page = folder / "report.html"
    assert done.stdout.splitlines() == [str(folder / "report.md"), str(page), "0 []"]
    assert page.read_text().count('src="data:image/png;base64,') > 5, "figures of both pages lie within"
    page.unlink()
    assert files(folder) == first


def test_a_bad_folder_is_a_message_and_exit_code_2(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: wanted a results folder, found no study.json in or below")
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (results.STUDY, "{"),
        (results.STUDY, "[]"),
        (results.STUDY, 100_000 * "[" + 100_000 * "]"),
        (results.TRIALS, ""),
        (results.TRIALS, "a,b\n1,2\n"),
        (results.TRIALS, "trial_id,stage,arm,status,error\nt0123456789ab,conf"),
    ],
)
def test_a_broken_file_is_a_message_and_exit_code_2(tmp_path, capsys, name, text):
    MadeUp(seeds=1).write(tmp_path)
    (tmp_path / name).write_text(text)
    assert main([str(tmp_path)]) == 2
    assert "could not read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "keep"),
    [(results.HISTORY, 0), (results.HISTORY, 0.5), (results.PREDICTIONS, 0.5), (results.EVALUATIONS, 0.5)],
)
def test_a_damaged_file_of_rows_costs_its_parts_as_a_missing_one_does(tmp_path, undrawn, name, keep):
    MadeUp(seeds=2, search=0, evaluations=2).write(tmp_path)
    whole = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else b"PAR1 and no more"
    (tmp_path / name).write_bytes(whole[: int(keep * len(whole))])
    assert main([str(tmp_path)]) == 0
    damaged = (tmp_path / "report.md").read_text() + (tmp_path / "details.md").read_text()
    assert f"`{name}` is damaged; what depends on it is left out" in damaged
    (tmp_path / name).unlink()
    assert main([str(tmp_path)]) == 0
    missing = (tmp_path / "report.md").read_text() + (tmp_path / "details.md").read_text()
    headings = [[line for line in text.splitlines() if line.startswith("#")] for text in (damaged, missing)]
    assert headings[0] == headings[1]


def test_what_is_wrong_with_one_study_does_not_keep_others_from_their_reports(tmp_path, capsys, undrawn):
    root = tmp_path / "results"
    made = MadeUp(seeds=2, search=0, evaluations=2)
    for name in ("minilm-cola", "cut-off", "no-object"):
        made.write(root / "alpha_lambda" / name)
    made.study["runs"]["state"] = "interrupted"
    made.write(root / "alpha_lambda" / "minilm-cola.20260501-101112")
    trials = root / "alpha_lambda" / "cut-off" / results.TRIALS
    trials.write_bytes(trials.read_bytes()[:-9])
    (root / "alpha_lambda" / "no-object" / results.STUDY).write_text("[")
    assert main([str(root)]) == 2
    printed = capsys.readouterr()
    assert str(root / "alpha_lambda" / "minilm-cola" / "report.md") in printed.out.splitlines()
    errors = printed.err.splitlines()
    assert [line.startswith("could not read ") and "restore the file" in line for line in errors] == [
        True,
        True,
    ]
    current, rest = (root / "index.md").read_text().split("## Set aside")
    aside, broken = rest.split("## Not readable")
    assert "(<alpha_lambda/minilm-cola/report.md>)" in current
    assert "(<alpha_lambda/minilm-cola.20260501-101112/report.md>)" in aside
    assert broken.count("could not read") == 2


@pytest.mark.parametrize("kept", ["stage == 'search'", "trial_id == 'search000'", "seed < 0", "seed == 1"])
def test_a_study_that_was_cut_off_anywhere_has_its_pages(kept, tmp_path):
    MadeUp().write(tmp_path)
    study = json.loads((tmp_path / "study.json").read_text())
    study["request"]["parts"] = ["factor", "cutoff", "costs"]
    (tmp_path / "study.json").write_text(json.dumps(study))
    trials = pd.read_csv(tmp_path / "trials.csv", dtype=str).query(kept.replace("seed", "seed.astype('int')"))
    trials["config/base_model"] = "frozen"  # as every study's rows name it
    trials.to_csv(tmp_path / "trials.csv", index=False)
    assert Path(write_report(tmp_path)).read_text().startswith("# ")
