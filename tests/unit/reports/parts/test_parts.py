"""What parts of the page show, against the numbers that were put in."""

import dataclasses

from adalayers.comparisons import pair
from reports.evidence import caveats
from reports.page.report import ReportPage
from reports.parts import (
    importances,
    mix,
    quality,
    search,
    settings,
    setup,
)
from reports.parts.part import Part
from tests.helpers.made_up import CONTROL, CORE, MadeUp, ranged
from tests.helpers.pages import evidence_of


def test_cells_that_predict_alike_are_counted(tmp_path):
    made = MadeUp(seeds=3, search=0, evaluations=2)
    for arm in (CORE[1], CORE[2], CORE[5]):
        for row in made.of(arm):
            row["predictions"] = "same"
    evidence = evidence_of(made, tmp_path)
    assert len(evidence.alike(CORE)) == 2  # two of the three say nothing new


def test_a_page_names_the_machine_of_its_trials_where_the_last_run_had_another(tmp_path):
    made = MadeUp(seeds=2)
    of = ((30, "H100, torch 2.11.0"), (0, "cpu, torch 2.13.0"))
    made.study["runs"]["history"] = [{"confirmed": n, "commit": "a", "machine": name} for n, name in of]
    facts = setup.info(evidence_of(made, tmp_path)).facts
    assert facts["machines of confirmed trials"] == "H100, torch 2.11.0"


def test_where_data_was_read_and_what_of_it_is_told(tmp_path):
    made = MadeUp(seeds=2, search=0)
    dataset = made.study["environment"]["dataset"]
    assert "read from" not in setup.info(evidence_of(made, tmp_path / "unknown")).facts
    dataset |= {"path": "/data/cola", "roles": {"train": "train", "test": "validation"}, "unused": ["test"]}
    facts = setup.info(evidence_of(made, tmp_path / "known")).facts
    assert facts["read from"] == "/data/cola"
    assert facts["splits"] == "train = train, test = validation; not used: test"


def test_parts_under_one_title_are_one_section(tmp_path, monkeypatch):
    made = [
        Part("A", lambda evidence: 1, lambda info: ["one"]),
        Part("A", lambda evidence: None, lambda info: ["never"]),
        Part("A", lambda evidence: 1, lambda info: ["two", ""]),
        Part("B", lambda evidence: 1, lambda info: []),
        Part("C", lambda evidence: 1, lambda info: ["three"]),
    ]
    monkeypatch.setattr("reports.page.report.parts", lambda names, short: made)
    text = ReportPage(evidence_of(MadeUp(seeds=2), tmp_path), tuple("vwxyz")).text()
    assert text.endswith("\n\n## A\n\none\n\ntwo\n\n## C\n\nthree\n")


def test_mix_of_the_best_trial_at_its_best_epoch(tmp_path):
    made = MadeUp(seeds=2, effects={CORE[6]: 0.3})
    made.study["environment"]["hidden_states"] = ["00", "01"]  # the study's own choice; this arm has another
    shown = mix.info(evidence_of(made, tmp_path)).best
    best = max(made.of(CORE[6]), key=lambda row: row["val/matthews"])
    assert best["trial_id"] in shown.name
    point = next(
        row
        for row in made.history
        if row["trial_id"] == best["trial_id"] and row["epoch"] == best["best_epoch"]
    )
    assert list(shown.steps["layer"]) == [f"layer {n}" for n in range(1, 7)]
    assert list(shown.steps["best epoch"]) == [point[f"mix/weight_{n:02d}"] for n in range(1, 7)]
    assert shown.steps.shape == (6, 7)
    assert shown.history["step"].nunique() == 10  # mix weights between evaluations too


def test_the_best_model_shown_learns_its_mix(tmp_path):
    shown = mix.info(evidence_of(MadeUp(effects={"uniform": 0.9}), tmp_path)).best
    assert "arm `uniform`" not in shown.name


def test_trained_models_with_their_level_line_and_mix(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    info = mix.info(evidence_of(made, tmp_path))
    assert len(info.rows) == 2 * len(CORE)
    rows = {row["trial_id"]: row for row in made.trials}
    for model in info.rows.to_dict("records"):
        row = rows[model["trial_id"]]
        assert (model["level"], model["entropy"]) == (row["config/alpha"], row["mix/entropy"])
        assert model["line"] == f"λ = {row['config/entropy_weight']:g}"
    assert info.layers == tuple(f"mix/weight_{n:02d}" for n in range(1, 7))


def test_what_an_arm_sets_itself_is_not_called_alike_in_all(tmp_path):
    def roles():
        return {name: role for name, role, _ in setup.info(evidence).hyperparameters}

    made = MadeUp(seeds=2, search=0, evaluations=2)
    evidence = evidence_of(made, tmp_path)
    assert settings.info(evidence).shared["k"] == 64
    assert "batch_size" in settings.info(evidence).shared
    assert roles()["batch_size"] == "fixed"
    made.arms[1]["config"]["batch_size"] = 600
    for arm in made.arms:
        arm["config"]["k"] = 128
    evidence = evidence_of(made, tmp_path)
    assert settings.info(evidence).shared["k"] == 128
    assert "batch_size" not in settings.info(evidence).shared
    assert roles()["batch_size"] == "fixed, unless an arm says otherwise"


def test_a_pair_of_arms_is_not_called_a_comparison_with_the_control(tmp_path):
    made = MadeUp(seeds=6, search=0, evaluations=2)
    made.study["request"]["comparisons"] = [
        dataclasses.asdict(pair(arm, other)) for arm, other in (("last", CONTROL), ("last", "uniform"))
    ]
    figure = quality.draw(quality.info(evidence_of(made, tmp_path)))
    names = [tick.get_text().replace("\n", " ") for tick in figure.axes[0].get_yticklabels()]
    assert names == ["last instead of the control (n = 6)", "last instead of uniform (n = 6)"]


def test_trials_of_searches_for_different_components_are_not_pooled(tmp_path):
    made = MadeUp(search=20)
    evidence = evidence_of(made, tmp_path / "one")
    assert evidence.searches == 1
    assert importances.info(evidence) is not None
    searched = [row for row in made.trials if row["stage"] == "search"]
    for place, row in enumerate(searched):
        row["search"] = "ab"[place % 2]
    evidence = evidence_of(made, tmp_path / "two")
    assert evidence.searches == 2
    assert importances.info(evidence) is None
    assert search.info(evidence).completed.empty


def test_the_ends_of_ranges_are_said_of_each_search(tmp_path):
    made = MadeUp(search=20)
    searched = [row for row in made.trials if row["stage"] == "search"]
    for place, row in enumerate(searched):
        row |= {"search": "ab"[place % 2], "status": "completed", "config/lr": 3e-3}
    made.study["request"]["spaces"] = {
        "a": {"lr": ranged(1e-4, 1e-2, log=True)},
        "b": {"lr": ranged(1e-4, 3e-3, log=True)},
    }
    evidence = evidence_of(made, tmp_path)
    assert [(edge.search, edge.name, edge.end) for edge in evidence.edges] == [("b", "lr", "high")]
    told = [caveat.finding for caveat in caveats.caveats(evidence) if "end of its range" in caveat.finding]
    assert told == ["At an end of its range lies the best of 1 of 2 searches: `b` `lr` = 0.003 (high)."]
