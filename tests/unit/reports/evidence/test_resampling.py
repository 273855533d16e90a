"""The bootstrap over examples, against scores of the same draws, a formula, and files with something missing."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics

from adalayers.tasks.metrics import CUT, class_scores, metric, token_scores
from adalayers.tasks.schemes import scheme_of
from reports.evidence.evidence import Evidence
from reports.evidence.resampling import RESAMPLES, collect, example_variances
from reports.reading.load import load
from tests.helpers.made_up import CONTROL, MadeUp

OTHER = "alpha=8 entropy_weight=0"


def frame(labels: list[str], predictions: list[str], trial: str = "t") -> pd.DataFrame:
    columns = {"trial_id": trial, "index": range(len(labels)), "label": labels, "prediction": predictions}
    return pd.DataFrame(columns)


def of_classes(many: int):
    """Return labels, predictions (half of them right), names, and scikit-learn's score by name."""
    rng, names = np.random.default_rng(many), np.array(list("abcd"))
    labels, said = rng.integers(many, size=40), rng.integers(many, size=40)
    said = np.where(rng.random(40) < 0.5, labels, said)
    macro = {"average": "macro", "labels": range(many), "zero_division": 0}
    scores = {
        "accuracy": sklearn_metrics.accuracy_score,
        "matthews": sklearn_metrics.matthews_corrcoef,
        "f1_macro": lambda *both: sklearn_metrics.f1_score(*both, **macro),
    }
    theirs = {name: lambda draw, of=of: of(labels[draw], said[draw]) for name, of in scores.items()}
    return names[labels].tolist(), names[said].tolist(), "abcd"[:many], theirs


def of_entities():
    rng, tags = np.random.default_rng(0), np.array(["O", "B-PER", "I-PER", "B-LOC"])
    scheme = scheme_of(tuple(tags.tolist()))
    labels = [tuple(rng.choice(tags, size=rng.integers(1, 6)).tolist()) for _ in range(30)]
    said = [tuple(tag if rng.random() < 0.7 else "O" for tag in sentence) for sentence in labels]

    def score(name):
        return lambda draw: token_scores([labels[i] for i in draw], [said[i] for i in draw], scheme)[name]

    return (
        labels,
        said,
        tags.tolist(),
        {name: score(name) for name in ("precision", "recall", "f1", "f1/PER")},
    )


def of_numbers():
    rng = np.random.default_rng(1)
    labels = np.round(rng.normal(size=40), 1)  # with values that several share
    said = np.round(labels + rng.normal(size=40), 1)
    scores = {
        "pearson": lambda *both: stats.pearsonr(*both).statistic,
        "spearman": lambda *both: stats.spearmanr(*both).statistic,
        "r2": sklearn_metrics.r2_score,
    }
    theirs = {name: lambda draw, of=of: of(labels[draw], said[draw]) for name, of in scores.items()}
    return *([f"{x:.9g}" for x in part] for part in (labels, said)), (), theirs


def of_words():
    rng, names = np.random.default_rng(2), ["NOUN", "VERB", "DET"]
    labels = [rng.integers(3, size=rng.integers(1, 6)) for _ in range(30)]
    said = [np.where(rng.random(len(own)) < 0.6, own, rng.integers(4, size=len(own))) for own in labels]
    with_cut = np.append(names, CUT)  # the fourth is a word that was cut away

    def score(name):
        return lambda draw: class_scores(
            *(np.concatenate([part[i] for i in draw]) for part in (labels, said)), 3
        )[name]

    rows = ([tuple(with_cut[tags].tolist()) for tags in part] for part in (labels, said))
    return *rows, names, {name: score(name) for name in ("accuracy", "f1_macro")}


@pytest.mark.parametrize(
    "task", [of_classes(2), of_classes(4), of_entities(), of_numbers(), of_words()], ids=range(5)
)
def test_scores_of_draws_are_those_of_the_examples_drawn(task):
    """Of examples, or sentences, drawn five times with replacement: scikit-learn's, SciPy's, and what trials have."""
    labels, said, classes, theirs = task
    n = len(labels)
    drawn = np.random.default_rng(7).integers(n, size=(5, n))
    weights = np.stack([np.bincount(draw, minlength=n) for draw in drawn]).astype(np.float32)
    for name, score in theirs.items():
        counts = collect(frame(labels, said), metric(name), classes)[2]
        found = metric(name).resampled(counts, weights)[0]
        assert found == pytest.approx([score(draw) for draw in drawn]), name


def test_classes_that_do_not_fit_the_words_are_refused():
    with pytest.raises(ValueError, match="sentence 0: wanted"):
        collect(frame([("A", "B")], [("A",)]), metric("accuracy"), ("A", "B"))


def test_a_class_that_nobody_names_counts_in_macro_f1():
    counts = collect(frame(["a", "a"], ["a", "a"]), metric("f1_macro"), ("a", "b"))[2]
    assert metric("f1_macro").resampled(counts, np.ones((1, 2), np.float32)) == pytest.approx(0.5)


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
    whole, some = {1, 2, 3, 4, 5, 6}, {2, 4}
    factor = next(pair for pair in loaded.study.request.comparisons if pair.kind == "factor")
    pair = {OTHER: 1.0, CONTROL: -1.0}
    contrasts = [(pair, whole), (pair, some), (factor.weights, whole)]
    variances, notes = example_variances(
        loaded.predictions,
        loaded.trials,
        loaded.study.request,
        "test",
        contrasts,
        ("a", "b"),
        shared=range(20),
    )
    assert notes == []
    assert set(variances) == {0, 1, 2}
    for place, (weights, seeds) in enumerate(contrasts):
        per_example = sum(
            weight * right[row["trial_id"]] / len(seeds)
            for arm, weight in weights.items()
            for row in study.of(arm)
            if row["seed"] in seeds
        )
        expected = per_example.var(ddof=0) / len(per_example)
        assert variances[place].without == pytest.approx(per_example.drop(range(20)).mean(), abs=1e-6)
        assert variances[place].mean == pytest.approx(expected, rel=4 * np.sqrt(2 / RESAMPLES))


def test_groups_are_drawn_whole_so_that_clustered_errors_widen_the_interval(tmp_path):
    """Of groups of one size the bootstrap has a formula: the variance of their mean differences over their number."""
    loaded, rng = load(made().write(tmp_path)), np.random.default_rng(0)
    rows = loaded.predictions.query("split == 'test'").assign(group=lambda x: x["index"] // 10)
    wrong = rows[["trial_id", "group"]].drop_duplicates().assign(wrong=lambda x: rng.random(len(x)) < 0.3)
    rows = rows.merge(wrong)
    rows["prediction"] = rows["label"].where(~rows["wrong"], "neither")
    scores = 1 - rows.groupby("trial_id")["wrong"].mean()
    trials = loaded.trials.assign(**{"test/accuracy": lambda x: x["trial_id"].map(scores)})
    contrast, seeds = {OTHER: 1.0, CONTROL: -1.0}, [1, 2, 3, 4, 5, 6]

    def variance(predictions: pd.DataFrame) -> float:
        found, notes = example_variances(
            predictions, trials, loaded.study.request, "test", [(contrast, seeds)], ("a", "b")
        )
        assert notes == []
        return found[0].mean

    arms = (
        trials.query("arm in @contrast.keys() and stage == 'confirm'")
        .set_index("trial_id")["arm"]
        .map(contrast)
    )
    by_group = rows.pivot_table(index="group", columns="trial_id", values="wrong", aggfunc="mean")[arms.index]
    expected = (by_group @ arms / len(seeds)).var(ddof=0) / len(by_group)
    grouped = variance(rows)
    assert grouped == pytest.approx(expected, rel=4 * np.sqrt(2 / RESAMPLES))
    assert grouped > 5 * variance(rows.drop(columns="group"))
    _, notes = example_variances(
        rows.assign(group=1), trials, loaded.study.request, "test", [(contrast, seeds)], ("a", "b")
    )
    assert notes == ["all examples are of one group"]


@pytest.mark.parametrize("tokens", [False, True])
def test_the_wider_interval_holds_the_other_and_repeats(tmp_path, tokens):
    loaded = load(made(tokens=tokens).write(tmp_path))
    found = Evidence(loaded).claims
    for claim in found:
        reach = 2.0 if claim.kind == "interaction" else 1.0  # of scores between 0 and 1
        assert claim.examples_low == -reach or claim.examples_low < claim.low
        assert claim.examples_high == reach or claim.examples_high > claim.high
        assert -reach <= claim.examples_low < claim.examples_high <= reach
    assert Evidence(loaded).claims == found


def test_on_validation_the_searchs_best_has_no_interval_over_the_examples_that_chose_it(tmp_path):
    study = made()
    for row in study.trials:
        row |= {"val/accuracy": row.pop("test/accuracy"), "val/matthews": row.pop("test/matthews")}
    for row in study.predictions:
        row["split"] = "val"
    assert [arm["name"] for arm in study.arms if arm["role"] == "best"] == ["best"]
    found = Evidence(load(study.write(tmp_path))).claims
    assert {claim.split for claim in found} == {"val"}
    assert all(("best" in claim.weights) == (claim.examples_low is None) for claim in found)


def test_missing_predictions_lose_this_interval_alone(tmp_path):
    place = made().write(tmp_path)
    before = Evidence(load(place))
    (tmp_path / "predictions.parquet").unlink()
    after = Evidence(load(place))
    one, other = ([(c.low, c.high, c.verdict) for c in each.claims] for each in (before, after))
    assert one == other
    assert {claim.examples_low for claim in after.claims} == {None}
    assert after.without_examples == ["`predictions.parquet` is missing or lacks columns"]
