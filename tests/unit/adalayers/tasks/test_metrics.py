"""Scores against values by hand, scikit-learn, SciPy and seqeval."""

import itertools
import random
import warnings

import numpy as np
import pytest

from adalayers.tasks import metrics
from adalayers.tasks.metrics import class_scores, number_scores, token_scores
from adalayers.tasks.schemes import runs, scheme_of

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
IOB = scheme_of(TAGS)


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def random_sentences(tags: tuple[str, ...], n: int, seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [rng.choices(tags, k=rng.randint(1, 12)) for _ in range(n)]


@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_scores_of_classes_are_those_of_scikit_learn(n_labels):
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    rng = np.random.default_rng(n_labels)
    labels = rng.integers(0, n_labels, 500)
    predictions = np.where(rng.random(500) < 0.6, labels, rng.integers(0, n_labels, 500))
    assert class_scores(labels, predictions, n_labels) == {
        "accuracy": pytest.approx(accuracy_score(labels, predictions)),
        "f1_macro": pytest.approx(f1_score(labels, predictions, average="macro")),
        "matthews": pytest.approx(matthews_corrcoef(labels, predictions)),
    }


@pytest.mark.parametrize("labels", [array(0, 1, 1), array(1, 1, 1)])
def test_constant_predictions_have_no_matthews_correlation_and_no_warning(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert class_scores(labels, array(1, 1, 1), 2)["matthews"] == 0.0


def ranked(name: str, labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None) -> float:
    """What scikit-learn computes."""
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

    if name == "auroc":
        return roc_auc_score(labels, scores, sample_weight=weights)
    if name == "average_precision":
        return average_precision_score(labels, scores, sample_weight=weights)
    false, true, _ = roc_curve(labels, scores, sample_weight=weights, drop_intermediate=False)
    return true[false <= 0.01].max()


@pytest.mark.parametrize("digits", [1, 2, 9])
@pytest.mark.parametrize("metric", metrics.RANK_METRICS, ids=lambda metric: metric.name)
def test_scores_of_rankings_are_scikit_learns_with_ties_and_of_draws(metric, digits):
    rng = np.random.default_rng(digits)
    labels = (rng.random(600) < 0.3).astype(int)
    scores = (rng.normal(size=600) + 3 * labels).round(digits)
    assert metric.score(labels, scores) == pytest.approx(ranked(metric.name, labels, scores))
    weights = np.stack([np.bincount(rng.integers(600, size=600), minlength=600) for _ in range(5)])
    assert metric.of(labels, scores, weights.astype(float)) == pytest.approx(
        [ranked(metric.name, labels, scores, row) for row in weights]
    )


def test_one_in_a_hundred_false_positives_is_few_however_many_there_are():
    recall = metrics.metric("recall@fpr=0.01")
    for hundreds in range(1, 60):
        labels = np.repeat([0, 1, 0], [hundreds, 1, 99 * hundreds])
        assert recall.score(labels, -np.arange(len(labels))) == 1.0
        assert recall.score(np.append(0, labels), -np.arange(len(labels) + 1)) == 0.0


def test_classes_that_never_occur_count_in_macro_f1():
    assert class_scores(array(0, 1), array(0, 1), 4)["f1_macro"] == 0.5


def test_matthews_of_many_examples_does_not_overflow():
    labels = np.tile(array(0, 1), 2_000_000)
    assert class_scores(labels, labels, 2)["matthews"] == 1.0


def spelt(scheme: str, form: str, types: tuple[str, ...] = ("PER", "LOC")) -> tuple[str, ...]:
    return ("O", *(form.format(letter, name) for letter in scheme for name in types))


@pytest.mark.parametrize(
    "tags",
    [
        TAGS,
        spelt("BIES", "{}-{}", ("PER", "DISEASE-X", "B", "S-1")),
        spelt("bilu", "{}/{}"),
        spelt("BMES", "{1}_{0}"),
        spelt("I", "{} {}", ("creative work", "work-of-art")),
        spelt("IE", "{}:{}"),
        ("O", "PER", "LOC", "TIME OF DAY"),
        ("B", "M", "E", "S"),
    ],
    ids=" ".join,
)
def test_entity_scores_are_seqevals(tags):
    from seqeval.metrics import classification_report
    from seqeval.scheme import IOBES

    scheme = scheme_of(tags)
    numbers = {name: str(i) for i, name in enumerate(scheme.types)}  # seqeval reads more into hyphens
    spelt = {tag: f"{place}-{numbers[name]}" for tag, (place, name) in scheme.places.items()}
    mode = {"mode": "strict", "scheme": IOBES} if scheme.strict else {}
    for seed in range(20):
        short = itertools.product(tags[:5], repeat=seed % 4)
        labels = [*random_sentences(tags, 30, seed), *map(list, short)]
        rng = random.Random(seed)
        predictions = [[tag if rng.random() < 0.7 else rng.choice(tags) for tag in row] for row in labels]
        renamed = [[[spelt.get(tag, "O") for tag in row] for row in part] for part in (labels, predictions)]
        report = classification_report(*renamed, output_dict=True, zero_division=0, **mode)
        theirs = {"f1": "f1-score", "precision": "precision", "recall": "recall"}
        assert token_scores(labels, predictions, scheme) == pytest.approx(
            {name: report["micro avg"][key] for name, key in theirs.items()}
            | {f"f1/{name}": report[key]["f1-score"] for name, key in numbers.items() if key in report}
        )


def test_nothing_right_is_zero_without_a_warning():
    zero = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    for tags in ([["O"], []], []):
        assert token_scores(tags, tags, IOB) == zero
    assert token_scores([["O"]], [["B-PER"]], IOB) == zero
    for predictions in ([["O", "O"]], [["B-LOC", "I-LOC"]]):
        assert token_scores([["B-PER", "O"]], predictions, IOB) == {**zero, "f1/PER": 0.0}


def test_tags_without_prefix_are_runs():
    words = runs(("NOUN", "VERB"))
    assert token_scores([["NOUN", "NOUN", "VERB"]], [["NOUN", "VERB", "VERB"]], words)["f1"] == 0.0
    assert token_scores([["NOUN", "NOUN", "VERB"]], [["NOUN", "NOUN", "VERB"]], words)["f1/NOUN"] == 1.0


def test_lengths_that_differ_name_the_sentence():
    with pytest.raises(ValueError, match="sentence 1: wanted 2 predictions, one per label, got 1"):
        token_scores([["O"], ["O", "O"]], [["O"], ["O"]], IOB)
    with pytest.raises(ValueError, match="2 sentences, got them for 1"):
        token_scores([["O"], ["O"]], [["O"]], IOB)


# Numbers


def numbers(seed: int = 0, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.round(rng.normal(size=n), 1)  # some are shared
    return labels, np.round(labels + rng.normal(size=n), 1)


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_numbers_are_scipys_and_sklearns(seed):
    from scipy import stats
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    labels, said = numbers(seed)
    wanted = {
        "pearson": stats.pearsonr(labels, said).statistic,
        "spearman": stats.spearmanr(labels, said).statistic,
        "r2": r2_score(labels, said),
        "rmse": mean_squared_error(labels, said) ** 0.5,
        "mae": mean_absolute_error(labels, said),
    }
    assert number_scores(labels, said) == pytest.approx(wanted)


def test_what_is_undefined_of_numbers_is_zero():
    labels, _ = numbers()
    for constant in (0.0, 0.1, 1e9):
        scores = number_scores(labels, np.full(len(labels), constant))
        assert (scores["pearson"], scores["spearman"]) == (0.0, 0.0)
        assert number_scores(np.full(len(labels), constant), labels)["r2"] == 0.0
    one = number_scores(np.array([3.0]), np.array([2.0]))
    assert one == {"pearson": 0.0, "spearman": 0.0, "r2": 0.0, "rmse": 1.0, "mae": 1.0}


def test_bounds_hold_for_numbers():
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 5))
        scores = number_scores(rng.integers(0, 3, n).astype(float), rng.normal(size=n) * 1e6)
        for metric in ("pearson", "spearman", "r2"):
            low, high = metrics.bounds(metric)
            assert low <= scores[metric] <= high
