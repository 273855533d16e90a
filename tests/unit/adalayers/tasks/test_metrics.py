"""Scores against values by hand, scikit-learn, SciPy and seqeval."""

import itertools
import random

import numpy as np
import pytest

from adalayers.tasks import metrics
from adalayers.tasks.metrics import class_scores, number_scores, token_scores
from adalayers.tasks.schemes import scheme_of, scheme_or_runs

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
IOB = scheme_of(TAGS)


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_scores_of_classes_by_hand():
    # Constant predictions have no correlation, and no warning.
    for labels in (array(0, 1, 1), array(1, 1, 1)):
        assert class_scores(labels, array(1, 1, 1), 2)["matthews"] == 0.0
    scores = class_scores(array(0, 0, 1, 1), array(0, 1, 1, 1), 2)
    expected = {"accuracy": 0.75, "f1_macro": (2 / 3 + 4 / 5) / 2, "matthews": 1 / 3**0.5}
    assert scores == pytest.approx(expected)
    assert class_scores(array(0, 1), array(0, 1), 4)["f1_macro"] == 0.5  # classes that never occur count
    many = np.tile(array(0, 1), 2_000_000)
    assert class_scores(many, many, 2)["matthews"] == 1.0


def ranked(name: str, labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None) -> float:
    """What scikit-learn computes."""
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

    scored = {"auroc": roc_auc_score, "average_precision": average_precision_score}
    if name in scored:
        return scored[name](labels, scores, sample_weight=weights)
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
    wanted = [ranked(metric.name, labels, scores, row) for row in weights]
    assert metric.of(labels, scores, weights.astype(float)) == pytest.approx(wanted)


def test_one_in_a_hundred_false_positives_is_few_however_many_there_are():
    recall = metrics.metric("recall@fpr=0.01")
    for hundreds in range(1, 60):
        labels = np.repeat([0, 1, 0], [hundreds, 1, 99 * hundreds])
        assert recall.score(labels, -np.arange(len(labels))) == 1.0
        assert recall.score(np.append(0, labels), -np.arange(len(labels) + 1)) == 0.0


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
    for seed in range(8):
        rng = random.Random(seed)
        labels = [rng.choices(tags, k=rng.randint(1, 12)) for _ in range(40)]
        labels += map(list, itertools.product(tags[:5], repeat=seed % 4))
        predictions = [[tag if rng.random() < 0.7 else rng.choice(tags) for tag in row] for row in labels]
        renamed = [[[spelt.get(tag, "O") for tag in row] for row in part] for part in (labels, predictions)]
        report = classification_report(*renamed, output_dict=True, zero_division=0, **mode)
        theirs = {"f1": "f1-score", "precision": "precision", "recall": "recall"}
        assert token_scores(labels, predictions, scheme) == pytest.approx(
            {name: report["micro avg"][key] for name, key in theirs.items()}
            | {f"f1/{name}": report[key]["f1-score"] for name, key in numbers.items() if key in report}
        )


def test_entity_scores_by_hand():
    zero = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    for tags in ([["O"], []], []):
        assert token_scores(tags, tags, IOB) == zero
    assert token_scores([["O"]], [["B-PER"]], IOB) == zero
    assert token_scores([["B-PER", "O"]], [["B-LOC", "I-LOC"]], IOB) == {**zero, "f1/PER": 0.0}
    words = scheme_or_runs(("NOUN", "VERB"))
    assert token_scores([["NOUN", "NOUN", "VERB"]], [["NOUN", "VERB", "VERB"]], words)["f1"] == 0.0
    assert token_scores([["NOUN", "NOUN", "VERB"]], [["NOUN", "NOUN", "VERB"]], words)["f1/NOUN"] == 1.0
    with pytest.raises(ValueError, match="sentence 1: wanted 2 predictions, one per label, got 1"):
        token_scores([["O"], ["O", "O"]], [["O"], ["O"]], IOB)
    with pytest.raises(ValueError, match="2 sentences, got them for 1"):
        token_scores([["O"], ["O"]], [["O"]], IOB)


def test_scores_of_numbers_by_hand_and_what_is_undefined_is_zero():
    """`test_resampling` holds correlations and r2 to SciPy and scikit-learn."""
    labels = np.array([1.0, 2.0, 2.0, 4.0])
    scores = number_scores(labels, np.array([2.0, 2.0, 3.0, 1.0]))
    wanted = {"pearson": -2 / 9.5**0.5, "spearman": -0.5, "r2": 1 - 11 / 4.75, "rmse": 2.75**0.5, "mae": 1.25}
    assert scores == pytest.approx(wanted)
    for constant in (0.0, 0.1, 1e9):
        scores = number_scores(labels, np.full(4, constant))
        assert (scores["pearson"], scores["spearman"]) == (0.0, 0.0)
        assert number_scores(np.full(4, constant), labels)["r2"] == 0.0
    one = number_scores(np.array([3.0]), np.array([2.0]))
    assert one == {"pearson": 0.0, "spearman": 0.0, "r2": 0.0, "rmse": 1.0, "mae": 1.0}
    assert number_scores(np.array([0.1, 0.7]), np.array([1e6 / 3, 1e6]))["pearson"] <= 1


def test_scores_of_few_answers_have_a_smallest_effect_of_two_hundredths():
    names = ("f1/PER", "matthews", "r2", "recall@fpr=0.01", "f1", "accuracy", "not known")
    assert [metrics.smallest_effect(name) for name in names] == [0.02] * 4 + [0.01] * 3
