"""Methods by number of examples and epochs: what is read from arms and their names."""

from reports.reading.load import load
from reports.tables import arms as tables
from reports.tables import methods
from tests.helpers.made_few_shot import with_few_shot
from tests.helpers.made_up import MadeUp


def test_only_studies_under_both_conditions_have_methods(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    assert not methods.under_both(load(made.write(tmp_path / "other")).plan)
    with_few_shot(made)
    assert methods.under_both(load(made.write(tmp_path / "both")).plan)
    made.study["request"]["factors"][2]["condition"] = False
    assert not methods.under_both(load(made.write(tmp_path / "one")).plan)


def test_a_method_is_an_arms_name_without_its_conditions_and_base_model(tmp_path):
    made = with_few_shot(MadeUp(seeds=2, search=0, evaluations=2))
    made.arms[0]["role"], made.arms[1]["role"] = "tuned", "best"
    loaded = load(made.write(tmp_path))
    table = methods.by_method(tables.arms(loaded.results.trials, loaded.plan), loaded.plan)
    assert table.columns.tolist() == methods.METHOD_COLUMNS
    assert table["arm"].tolist() == [
        arm["name"] for arm in made.arms[2:]
    ]  # searches' own arms have other rates
    for row in table.to_dict("records"):
        tuned = f" {row['base_model']}" if row["base_model"] != "frozen" else ""
        assert row["arm"] == (
            f"{row['method']}{tuned} train_examples={row['examples']:g} epochs={row['epochs']:g}"
        )
    assert set(table["base_model"]) == {"frozen", "fine-tuned"}
