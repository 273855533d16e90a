"""The page, the claims file and the command, from files alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from adalayers.results import files as results
from adalayers.results.folder import Folder
from adalayers.results.study_file import parse
from reports import write_cover, write_report
from reports.__main__ import main
from reports.evidence.evidence import Evidence
from reports.page.report import Page
from reports.reading.load import Loaded, lacking, load, make_plan
from tests.helpers.made_layers import with_single_layers, with_sizes
from tests.helpers.made_up import CONTROL, MadeUp

OTHER = "alpha=8 entropy_weight=0"
CLAIM = [
    *("arm", "control", "metric", "split", "n", "difference", "low", "high", "level", "comparisons"),
    *("looks", "verdict", "p_value", "p_adjusted", "interval_level"),
    *("improvement", "improvement_low", "improvement_high", "examples_low", "examples_high"),
]
HEAVY = ("torch", "ray", "transformers", "mlflow", "datasets", "pyplot")


def page(made: MadeUp, folder: Path, **how: bool) -> str:
    """Return the page of a made-up study without drawing its figures."""
    return read(made.write(folder, **how))


def read(place: Folder) -> str:
    loaded = load(place)
    return Page(Evidence(loaded)).text()


def claims(folder: Path) -> dict[str, dict]:
    """Return the claims of a results folder by arm, as they are written."""
    return {claim.arm: claim.as_json() for claim in Evidence(load(folder)).claims}


def part(text: str, title: str) -> str:
    """Return one section of a page."""
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_sections_come_in_order_and_links_lead_somewhere(tmp_path):
    text = Path(write_report(MadeUp().write(tmp_path))).read_text()
    assert text == read(Folder(tmp_path))
    assert re.findall(r"^## (.*)$", text, re.M) == [
        "Question",
        "Answer",
        "How it was done",
        "Arms",
        "What the intervals cover",
        "The factorial core",
        "Convergence",
        "What λ does to the mix",
        "Mix weights of the best model",
        "Errors",
        "The search, apart",
        "What the search's scores hang on",
        "Where the search went",
        "Interim analyses",
        "Use of the test split",
        "Failures",
        "Problems in the files",
        "Caveats",
        "Limits",
        "Set-up",
        "Provenance",
    ]
    links = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(links) == 2 * 13
    assert all((tmp_path / link).stat().st_size > 0 for link in links)
    assert "None: all files are there and agree." in text


def test_the_page_says_what_the_search_cannot(tmp_path):
    whole = page(MadeUp(), tmp_path)
    text = part(whole, "How it was done")
    assert "the search alone cannot judge α" in text
    assert "without pruning" in text
    assert "α and `mix_lr` are one axis" in text
    assert "its cutoff 0.2 is not below 1/6" in text
    assert "- The published pair is that of CoLA" in part(whole, "Answer")


def test_claims_file(tmp_path):
    made = MadeUp(seeds=5, effects={OTHER: 0.3})
    text = Path(write_report(made.write(tmp_path))).read_text()
    found = {claim["arm"]: claim for claim in json.loads((tmp_path / "claims.json").read_text())}
    assert found == claims(tmp_path)
    assert len(found) == 14
    assert all(list(claim) == CLAIM for claim in found.values())
    assert all(claim["control"] == CONTROL and claim["comparisons"] == 14 for claim in found.values())
    assert found[OTHER]["verdict"] == "better"
    assert f"Better than the control: `{OTHER}`" in part(text, "Answer")
    contrasts = json.loads((tmp_path / "contrasts.json").read_text())
    assert {claim["metric"] for claim in contrasts} == {"mix/entropy", "convergence_step"}
    assert all(list(claim) == CLAIM for claim in contrasts)


def test_nothing_found_is_not_no_effect(tmp_path):
    text = page(MadeUp(seeds=3), tmp_path)
    answer = part(text, "Answer")
    assert "**There is not enough evidence to answer.**" in answer
    assert re.search(r"would take (about \d+|more than 1,000) seeds per arm", answer)
    assert "no effect" not in text.lower()


def test_one_seed_has_no_interval_and_is_marked(tmp_path):
    text = page(MadeUp(seeds=1), tmp_path)
    assert "**There is not enough evidence to answer.**" in text
    assert "takes 27 seeds per arm" in text  # 1 SD, 14 comparisons, 90%, at the next analysis
    arms = part(text, "Arms")
    assert arms.count("(n = 1, no interval)") == 15 + 15 + 14
    assert not re.search(r"\d \[", arms)
    assert {(claim["n"], claim["low"], claim["verdict"]) for claim in claims(tmp_path).values()} == {
        (1, None, "not enough evidence")
    }


def test_banner(tmp_path):
    assert "> " not in page(MadeUp(), tmp_path).split("## Question")[0]
    made = MadeUp()
    made.study["happened"] |= {"smoke": True, "state": "interrupted"}
    made.study["on"]["git"]["dirty"] = True
    made.trials[-1]["status"] = "unfinished"
    top = page(made, tmp_path).split("## Question")[0]
    for words in ("Smoke run", "Uncommitted changes", "Unfinished study", "`interrupted`", "1 trial,"):
        assert words in top


def test_analyses_and_openings_are_said(tmp_path):
    made = MadeUp()
    made.study["happened"] |= {"looks": 3, "test_opened": 2}
    text = page(made, tmp_path)
    assert "This is interim analysis 3" in part(text, "Interim analyses")
    assert "cannot be worked out again" in part(text, "Interim analyses")  # made-up runs say nothing of seeds
    assert "opened in 2 runs" in part(text, "Use of the test split")
    assert claims(tmp_path)[OTHER]["looks"] == 3


def test_a_factor_fixed_by_the_command_is_said(tmp_path):
    made = MadeUp()
    made.study["asked"]["set"] = {"alpha": 64}
    assert "**Fixed by the command**, though the study is about it: `alpha=64`" in page(made, tmp_path)


def test_failures_show_their_error_as_text(tmp_path):
    text = part(page(MadeUp(failed=((OTHER, 2),)), tmp_path), "Failures")
    assert r"RuntimeError: loss \| was \`nan\`" in text
    assert "1 trial without a result" in text


def test_missing_files_are_named_not_raised(tmp_path):
    place = MadeUp().write(tmp_path, best=False)
    before = claims(tmp_path)
    (tmp_path / results.HISTORY).unlink()
    (tmp_path / results.PREDICTIONS).unlink()
    text = read(place)
    problems = part(text, "Problems in the files")
    for name in ("history.parquet", "predictions.parquet", "best/"):
        assert f"`{name}` is missing" in problems
    assert claims(tmp_path) == before  # trials.csv is what claims rest on
    assert "There is no history of learned mix weights." in text


def test_edited_rows_are_reported_and_the_disagreement_named(tmp_path):
    place = MadeUp(seeds=3).write(tmp_path)
    frame = results.read_trials(place)
    gone = (frame["arm"] == OTHER) & (frame["seed"] == 3)
    results.write_trials(place, frame[~gone].to_dict("records"))
    text = read(place)
    assert "the rows are what is reported" in part(text, "Problems in the files")
    assert claims(tmp_path)[OTHER]["n"] == 2


def test_extra_and_missing_columns(tmp_path):
    place = MadeUp().write(tmp_path)
    frame = pd.read_csv(tmp_path / results.TRIALS)
    frame = frame.drop(columns=["mix/entropy", "config/mix_lr", "parameters", "seconds", "best_epoch"])
    frame.assign(note="by hand").to_csv(tmp_path / results.TRIALS, index=False)
    assert read(place).startswith("# alpha")


@pytest.mark.parametrize("study", [{}, {"asked": None, "on": []}, {"asked": {"arms": [1, {}]}}])
def test_a_study_file_without_its_parts_is_named_not_raised(tmp_path, study):
    made = MadeUp(seeds=2)
    made.study = study
    problems = part(page(made, tmp_path, counted=False), "Problems in the files")
    for name in (
        "asked.metric",
        "asked.control",
        "asked.arms",
        "on.dataset.baseline.val",
        "on.hidden_states",
    ):
        if name != "asked.arms" or "arms" not in (study.get("asked") or {}):
            assert f"`study.json` has no `{name}`" in problems
    assert claims(tmp_path) == {}


@pytest.mark.parametrize("name", ["asked", "on", "happened"])
def test_every_key_of_the_study_file_may_be_missing_or_odd(tmp_path, name):
    made = MadeUp(seeds=2, search=1, stopped=0, evaluations=2)
    made.trials = made.trials[:5]
    made.study["asked"]["arms"] = made.study["asked"]["arms"][:2]
    loaded = load(made.write(tmp_path))
    whole = made.study[name]
    odd = [None, "odd", 7, ["odd"], {"odd": "odd"}]
    cases = [{**whole, key: odd[place % 5]} for place, key in enumerate(whole)]
    for part_ in [*cases, *(dict.fromkeys(whole, value) for value in odd), {}]:
        study = {**made.study, name: part_}
        read_, missing = parse(study)
        plan = make_plan(read_, loaded.results.trials)
        problems = tuple(lacking(read_, missing, plan))
        changed = Loaded(replace(loaded.results, study=study), read_, plan, problems)
        assert Page(Evidence(changed)).text().startswith("# ")


def test_rebuilding_gives_the_same_bytes(tmp_path):
    place = MadeUp(failed=((OTHER, 2),), search=14).write(tmp_path)  # enough for importances

    def files() -> dict[str, bytes]:
        write_report(place)
        return {
            path.relative_to(tmp_path).as_posix(): path.read_bytes()
            for path in tmp_path.rglob("*")
            if path.suffix in (".md", ".json", ".svg", ".png")
        }

    first = files()
    assert len(first) == 2 * 13 + 4
    assert files() == first


def test_the_command_imports_nothing_heavy_and_needs_no_network(tmp_path):
    MadeUp(search=14).write(tmp_path / "study")  # enough for importances, which import Optuna
    program = (
        "import runpy, socket, sys\n"
        "def refuse(*args, **kwargs): raise OSError('no network in this test')\n"
        "socket.socket.connect = refuse\n"
        f"sys.argv = ['reports', {str(tmp_path / 'study')!r}]\n"
        "try: runpy.run_module('reports', run_name='__main__')\n"
        "except SystemExit as end: code = end.code\n"
        "names = {name.split('.')[0] for name in sys.modules}\n"
        "names |= {'pyplot'} if 'matplotlib.pyplot' in sys.modules else set()\n"
        f"print(code, sorted(names & set({HEAVY!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(tmp_path / "study" / "report.md"), "0 []"]


def test_a_bad_folder_is_a_message_and_exit_code_2(tmp_path):
    command = [sys.executable, "-m", "reports", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("wanted a results folder, found no study.json in or below")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (results.STUDY, "{"),
        (results.STUDY, "[]"),
        (results.TRIALS, ""),
        (results.TRIALS, "a,b\n1,2\n"),
        (results.HISTORY, "not parquet"),
    ],
)
def test_a_broken_file_is_a_message_and_exit_code_2(tmp_path, capsys, name, text):
    MadeUp(seeds=1).write(tmp_path)
    (tmp_path / name).write_text(text)
    assert main([str(tmp_path)]) == 2
    assert "could not read" in capsys.readouterr().err


def test_cover_over_several_folders(tmp_path, capsys):
    root = tmp_path / "results" / "alpha_lambda"
    MadeUp(seeds=2).write(root / "minilm-cola")
    MadeUp(seeds=1, tokens=True).write(root / "minilm-conll2003")
    assert main([str(tmp_path / "results")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(root / "minilm-cola" / "report.md"),
        str(root / "minilm-conll2003" / "report.md"),
        str(root / "report.md"),
        str(tmp_path / "results" / "index.md"),
    ]
    text = (root / "report.md").read_text()
    assert "[minilm-cola](<minilm-cola/report.md>): test Matthews correlation" in text
    assert "[minilm-conll2003](<minilm-conll2003/report.md>): test entity F1" in text
    row = next(line for line in text.splitlines() if line.startswith(f"| `{CONTROL}` | 0."))
    assert "n = 2 |" in row
    assert "(n = 1, no interval)" in row


def test_long_tables_are_folded_and_short_ones_are_not(tmp_path):
    text = page(MadeUp(), tmp_path)
    assert text.count("<details>") == text.count("</details>") > 4
    for title in ("Arms", "The factorial core", "Caveats"):
        assert "<details>" not in part(text, title)


def test_sections_that_only_some_studies_have(tmp_path):
    text = page(with_single_layers(MadeUp()), tmp_path / "layers")
    assert "| layer 6 | `layer=6` |" in part(text, "Single layers")
    text = page(MadeUp(tokens=True, examples=20), tmp_path / "tokens")
    classes = part(text, "Scores by entity class")
    assert "| class | arm | precision | recall | F1 |" in classes
    assert "| LOC | `" in classes
    errors = part(text, "Errors")
    assert "| tags of the words that differ | as predicted |" in errors
    assert "2 B-ORG" in errors
    assert "## Score against data size" not in text
    text = page(with_sizes(MadeUp(search=0)), tmp_path / "sizes")
    assert "| alpha=64 | 3,000 |" in part(text, "Score against data size")


def test_importances_name_their_evaluator_and_their_trials(tmp_path):
    few = part(page(MadeUp(), tmp_path / "few"), "What the search's scores hang on")
    assert "No importances: 4 completed search trials" in few
    text = part(page(MadeUp(search=14), tmp_path / "many"), "What the search's scores hang on")
    assert "PED-ANOVA (Optuna) asks what sets the best 42% of the trials apart" in text
    assert "n = 12 trials, 50 resamples" in text
    assert "Only completed trials count" in text


def test_what_is_wrong_with_one_study_does_not_keep_others_from_their_reports(tmp_path, capsys):
    root = tmp_path / "results"
    made = MadeUp(seeds=2, search=0, evaluations=2)
    made.write(root / "alpha_lambda" / "minilm-cola")
    made.study["happened"]["state"] = "interrupted"
    made.write(root / "alpha_lambda" / "minilm-cola.20260501-101112")
    made.write(root / "other" / "minilm-imdb")
    (root / "other" / "minilm-imdb" / results.TRIALS).write_text("a,b\n1,2\n")
    assert main([str(root)]) == 2
    assert "could not read trials.csv" in capsys.readouterr().err
    current, rest = (root / "index.md").read_text().split("## Set aside")
    aside, broken = rest.split("## Not readable")
    assert "1 study, each with its report." in current
    assert (
        "| alpha\\_lambda | minilm | cola | finished | 2 | 14 not enough evidence (control "
        f"`{CONTROL}`) | [minilm-cola](<alpha_lambda/minilm-cola/report.md>) |"
    ) in current
    assert "| interrupted |" in aside
    assert "(<alpha_lambda/minilm-cola.20260501-101112/report.md>)" in aside
    assert "- `other/minilm-imdb`: could not read trials.csv" in broken


def test_a_study_alone_has_no_index(tmp_path):
    MadeUp(seeds=1, search=0, evaluations=2).write(tmp_path)
    assert main([str(tmp_path)]) == 0
    assert not (tmp_path / "index.md").exists()


def test_cover_has_scores_and_layer_profiles(tmp_path):
    for name, layers in (("minilm-cola", 6), ("roberta-large-cola", 24)):
        MadeUp(seeds=3, search=0, evaluations=2, layers=layers, effects={OTHER: 0.3}).write(tmp_path / name)
    text = Path(write_cover(tmp_path, ["minilm-cola", "roberta-large-cola"])).read_text()
    scores = part(text, "Scores")
    assert scores.count(f"`{OTHER}`: 0.6") == 2
    assert scores.count("| better |") == 2
    profiles = part(text, "Layer profiles")
    assert "| layer 24 | 1.00 |" in profiles
    assert "| layer 3 | 0.50 |" in profiles
    for ending in ("png", "svg"):
        assert (tmp_path / "figures" / f"layer_profiles.{ending}").stat().st_size > 0


@pytest.mark.slow
def test_a_large_study_is_rebuilt_in_seconds(tmp_path):
    made = MadeUp(seeds=13, search=805, stopped=500, evaluations=100, examples=1000)
    assert len(made.trials) == 1000
    made.write(tmp_path)
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "reports", str(tmp_path)], check=True)
    assert time.monotonic() - started < 40  # 8 s alone on two cores; the bound leaves room for a busy machine


def test_cover_names_a_folder_that_cannot_be_read(tmp_path):
    MadeUp(seeds=2).write(tmp_path / "a")
    text = Path(write_cover(tmp_path, ["a", tmp_path / "b"])).read_text()
    assert "[a](<a/report.md>)" in text
    assert "found no study.json" in text
