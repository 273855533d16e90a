"""Datasets that have a name here, an entry each: where they are, which columns and splits are read, what selects.

GLUE withholds the labels of its test splits. As the thesis does for CoLA, its tasks give up a tenth of train as
validation, and GLUE's validation split serves as test; MNLI has two of these, for texts of the domains of train and of
others. Of MRPC and QQP GLUE prints accuracy and the F1 of one class: here accuracy selects.
"""

from __future__ import annotations

from adalayers.tasks.corpora import EMBEDDED, Known

_CONLL_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
_WNUT_TYPES = ("corporation", "creative-work", "group", "location", "person", "product")
_PAIR = ("sentence1", "sentence2")
_ENTAILED = ("entailment", "not_entailment")
_PARQUET = "refs/convert/parquet"
"""The hub's own edition of a dataset whose main branch holds a loading script, which `datasets` no longer runs."""


def _glue(
    config: str,
    metric: str,
    text: str | tuple[str, str],
    label_names: tuple[str, ...] = (),
    test: str = "validation",
    also: tuple[str, ...] | None = None,
) -> Known:
    return Known(
        f"nyu-mll/glue:{config}",
        metric,
        text=text,
        label_names=label_names,
        validation=None,
        test=test,
        also=(f"glue:{config}",) if also is None else also,
    )


_MNLI = ("entailment", "neutral", "contradiction")
_PREMISED = ("premise", "hypothesis")

KNOWN: dict[str, Known] = {
    "imdb": Known(
        "stanfordnlp/imdb",
        "accuracy",
        label_names=("neg", "pos"),
        validation=None,
        also=("stanfordnlp/imdb:plain_text",),
    ),
    "cola": _glue("cola", "matthews", "sentence", ("unacceptable", "acceptable")),
    "sst2": _glue("sst2", "accuracy", "sentence", ("negative", "positive")),
    "mrpc": _glue("mrpc", "accuracy", _PAIR, ("not_equivalent", "equivalent")),
    "qqp": _glue("qqp", "accuracy", ("question1", "question2"), ("not_duplicate", "duplicate")),
    "stsb": _glue("stsb", "spearman", _PAIR),
    "mnli": _glue("mnli", "accuracy", _PREMISED, _MNLI, "validation_matched"),
    "mnli-mismatched": _glue("mnli", "accuracy", _PREMISED, _MNLI, "validation_mismatched", also=()),
    "qnli": _glue("qnli", "accuracy", ("question", "sentence"), _ENTAILED),
    "rte": _glue("rte", "accuracy", _PAIR, _ENTAILED),
    "wnli": _glue("wnli", "accuracy", _PAIR, ("not_entailment", "entailment")),
    "20newsgroups": Known("SetFit/20_newsgroups", "accuracy", validation=None),
    "sms-spam": Known(
        "ucirvine/sms_spam",
        "f1_macro",
        text="sms",
        label_names=("ham", "spam"),
        validation=None,
        test=None,
        also=("ucirvine/sms_spam:plain_text",),
    ),
    "crowdflower": Known("tasksource/crowdflower", "accuracy", validation=None, test=None, by_config="task"),
    "conll2003": Known(
        "eriktks/conll2003",
        "f1",
        text="tokens",
        label="ner_tags",
        label_names=_CONLL_TAGS,
        hub_revision=_PARQUET,
        also=("eriktks/conll2003:conll2003",),
    ),
    "wnut2017": Known(
        "leondz/wnut_17",
        "f1",
        text="tokens",
        label="ner_tags",
        label_names=("O", *(f"{prefix}-{name}" for name in _WNUT_TYPES for prefix in "BI")),
        hub_revision=_PARQUET,
        also=("wnut_17", "leondz/wnut_17:wnut_17"),
    ),
    "wikiann": Known(
        "unimelb-nlp/wikiann",
        "f1",
        text="tokens",
        label="ner_tags",
        label_names=_CONLL_TAGS[:7],
        by_config="language",
    ),
    "conll2003-pos": Known(
        "eriktks/conll2003", "accuracy", text="tokens", label="pos_tags", hub_revision=_PARQUET
    ),
    "universal-dependencies": Known(
        "universal-dependencies/universal_dependencies",
        "accuracy",
        text="tokens",
        label="upos",
        by_config="treebank",
    ),
    "acceptability-demo": Known(EMBEDDED, "matthews"),
    "inference-demo": Known(EMBEDDED, "accuracy"),
    "similarity-demo": Known(EMBEDDED, "pearson"),
    "entities-demo": Known(EMBEDDED, "f1"),
    "word-classes-demo": Known(EMBEDDED, "accuracy"),
}
