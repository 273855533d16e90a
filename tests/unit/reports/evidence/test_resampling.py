"""The bootstrap over examples, against scores of the same draws, a formula, and files with something missing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import CUT, Answers, metric
from reports.evidence.evidence import Evidence
from reports.evidence.resampling import RESAMPLES, collect, example_variances
from reports.reading.load import load
from tests.helpers.made_up import CONTROL, MadeUp

OTHER = "alpha=8 entropy_weight=0"
PAIR = {OTHER: 1.0, CONTROL: -1.0}
ROUGHLY = 4 * np.sqrt(2 / RESAMPLES)
"""How far, relatively, a variance over so many draws lies from that of all."""


def frame(labels: list, predictions: list) -> pd.DataFrame:
    columns = {"trial_id": "t", "index": range(len(labels)), "label": labels, "prediction": predictions}
    return pd.DataFrame(columns)


NUMBERS = [f"{x:.1f}" for x in np.random.default_rng(0).normal(size=20)]  # so that several examples share one
TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
TASKS = {
    "sequence": (list("abcd"), [], 0, ("accuracy", "matthews", "f1_macro")),
    "token": (TAGS, ["O"], 5, ("precision", "recall", "f1", "f1/PER")),
    "word": (["NOUN", "VERB", "DET"], [CUT], 5, ("accuracy", "f1_macro")),
    "regression": (NUMBERS, [], 0, ("pearson", "spearman", "r2")),
}
"""By kind: what labels are, what else is predicted, words of the longest sentence (0: none), scores."""


@pytest.mark.parametrize("kind", TASKS)
def test_scores_of_draws_are_those_that_trials_have_of_the_examples_drawn(kind):
    """Of examples, or sentences, drawn five times with replacement."""
    options, others, longest, names = TASKS[kind]
    labels, said, rng = [], [], np.random.default_rng(4)
    for _ in range(40):
        length = int(rng.integers(1, longest + 1)) if longest else 1
        right = tuple(rng.choice(options, size=length).tolist())
        given = tuple(label if rng.random() < 0.6 else str(rng.choice(options + others)) for label in right)
        labels.append(right if longest else right[0])
        said.append(given if longest else given[0])
    classes = () if kind == "regression" else options
    drawn = rng.integers(40, size=(5, 40))
    weights = np.stack([np.bincount(draw, minlength=40) for draw in drawn]).astype(np.float32)
    answers = [Answers([labels[i] for i in draw], [said[i] for i in draw], classes) for draw in drawn]
    wanted = [KINDS[kind].rescored(each) for each in answers]
    for name in names:
        counts = collect(frame(labels, said), metric(name), classes)[2]
        found = metric(name).resampled(counts, weights)[0]
        assert found == pytest.approx([scores[name] for scores in wanted]), name


def test_a_class_that_nobody_names_counts_in_macro_f1_and_what_does_not_fit_is_refused():
    counts = collect(frame(["a", "a"], ["a", "a"]), metric("f1_macro"), ("a", "b"))[2]
    assert metric("f1_macro").resampled(counts, np.ones((1, 2), np.float32)) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="sentence 0: wanted"):
        collect(frame([("A", "B")], [("A",)]), metric("accuracy"), ("A", "B"))


def made(**how) -> MadeUp:
    study = MadeUp(seeds=6, search=0, evaluations=2, **{"examples": 200, **how})
    study.metric = study.metric if study.tokens else "accuracy"
    study.study["request"]["metric"] = study.metric
    return study


def test_variance_of_accuracy_is_the_sampling_variance_of_a_mean(tmp_path):
    """For accuracy the bootstrap has a formula: the variance of the per-example differences over their number."""
    study = made()
    loaded = load(study.write(tmp_path))
    rows = loaded.predictions.assign(right=lambda x: x["label"] == x["prediction"])
    right = rows.pivot(index="index", columns="trial_id", values="right").astype(float)
    request, whole = loaded.study.request, {1, 2, 3, 4, 5, 6}
    factor = next(pair for pair in request.comparisons if pair.kind == "factor")
    contrasts = dict(enumerate([(PAIR, whole), (PAIR, {2, 4}), (factor.weights, whole)]))
    variances, notes = example_variances(loaded, "test", contrasts, range(20))
    assert (notes, set(variances)) == ([], {0, 1, 2})
    for place, (weights, seeds) in contrasts.items():
        per_example = sum(
            weight * right[row["trial_id"]] / len(seeds)
            for arm, weight in weights.items()
            for row in study.of(arm)
            if row["seed"] in seeds
        )
        expected = per_example.var(ddof=0) / len(per_example)
        assert variances[place].without == pytest.approx(per_example.drop(range(20)).mean(), abs=1e-6)
        assert variances[place].mean == pytest.approx(expected, rel=ROUGHLY)


def test_groups_are_drawn_whole_so_that_clustered_errors_widen_the_interval(tmp_path):
    """Of groups of one size the bootstrap has a formula: the variance of their mean differences over their number."""
    loaded, rng = load(made().write(tmp_path)), np.random.default_rng(0)
    rows = loaded.predictions.query("split == 'test'").assign(group=lambda x: x["index"] // 10)
    wrong = rows[["trial_id", "group"]].drop_duplicates().assign(wrong=lambda x: rng.random(len(x)) < 0.3)
    rows = rows.merge(wrong)
    rows["prediction"] = rows["label"].where(~rows["wrong"], "neither")
    scores = 1 - rows.groupby("trial_id")["wrong"].mean()
    trials = loaded.trials.assign(**{"test/accuracy": lambda x: x["trial_id"].map(scores)})

    def variances(predictions: pd.DataFrame):
        contrasts = {0: (PAIR, [1, 2, 3, 4, 5, 6])}
        return example_variances(replace(loaded, predictions=predictions, trials=trials), "test", contrasts)

    weights = trials.query("stage == 'confirm'").set_index("trial_id")["arm"].map(PAIR).dropna()
    by_group = rows.pivot_table(index="group", columns="trial_id", values="wrong")[weights.index]
    expected = (by_group @ weights / 6).var(ddof=0) / len(by_group)
    (grouped, notes), (alone, _) = variances(rows), variances(rows.drop(columns="group"))
    assert notes == []
    assert grouped[0].mean == pytest.approx(expected, rel=ROUGHLY)
    assert grouped[0].mean > 5 * alone[0].mean
    assert variances(rows.assign(group=1))[1] == ["all examples are of one group"]


@pytest.mark.parametrize("tokens", [False, True])
def test_the_wider_interval_holds_the_other_and_missing_predictions_lose_it_alone(tmp_path, tokens):
    place = made(tokens=tokens).write(tmp_path)
    found = Evidence(load(place)).claims
    for claim in found:
        reach = 2.0 if claim.kind == "interaction" else 1.0  # of scores between 0 and 1
        assert claim.examples_low == -reach or claim.examples_low < claim.low
        assert claim.examples_high == reach or claim.examples_high > claim.high
    assert Evidence(load(place)).claims == found
    (tmp_path / "predictions.parquet").unlink()
    without = Evidence(load(place))
    assert [(c.low, c.high, c.verdict) for c in without.claims] == [(c.low, c.high, c.verdict) for c in found]
    assert {claim.examples_low for claim in without.claims} == {None}
    assert without.resampled[1] == ["`predictions.parquet` is missing or lacks columns"]


def test_on_validation_the_searchs_best_has_no_interval_over_the_examples_that_chose_it(tmp_path):
    study = made()
    for row in study.trials:
        row |= {"val/accuracy": row.pop("test/accuracy"), "val/matthews": row.pop("test/matthews")}
    for row in study.predictions:
        row["split"] = "val"
    found = Evidence(load(study.write(tmp_path))).claims
    assert {claim.split for claim in found} == {"val"}
    assert all(("best" in claim.weights) == (claim.examples_low is None) for claim in found)
