"""Datasets that have a name here, an entry each: where they are, which columns and splits are read, what selects.

GLUE withholds the labels of its test splits. As the thesis does for CoLA, its tasks give up a tenth of train as
validation, and GLUE's validation split serves as test; MNLI has two of these, for texts of the domains of train and of
others. Of MRPC and QQP GLUE prints accuracy and the F1 of one class: here accuracy selects.
"""

from __future__ import annotations

from typing import Any

from adalayers.tasks.corpora import EMBEDDED, CatalogEntry

_CONLL_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
_WNUT_TYPES = ("corporation", "creative-work", "group", "location", "person", "product")
_WNUT_TAGS = ("O", *(f"{prefix}-{name}" for name in _WNUT_TYPES for prefix in "BI"))
_PAIR = ("sentence1", "sentence2")
_ENTAILED = ("entailment", "not_entailment")
_MNLI = (("premise", "hypothesis"), "entailment", "neutral", "contradiction")
_PARQUET = "refs/convert/parquet"
"""The hub's own edition of a dataset whose main branch holds a loading script, which `datasets` no longer runs."""


def _glue(config: str, metric: str, text: str | tuple[str, str], *names: str, **fields: Any) -> CatalogEntry:
    usual = {"validation": None, "test": "validation"}
    return CatalogEntry(f"nyu-mll/glue:{config}", metric, text=text, label_names=names, **{**usual, **fields})


def _words(source: str, metric: str, label: str, *names: str, tags: str | None = None) -> CatalogEntry:
    return CatalogEntry(
        source, metric, text="tokens", label=label, tags=tags, label_names=names, hub_revision=_PARQUET
    )


def known_as(name: str, source: str) -> str:
    """Return the name of a dataset of the catalog, else the source: any folder may be called imdb."""
    return name if name in CATALOG and CATALOG[name].source == source else source


CATALOG: dict[str, CatalogEntry] = {
    "imdb": CatalogEntry("stanfordnlp/imdb", "accuracy", label_names=("neg", "pos"), validation=None),
    "cola": _glue("cola", "matthews", "sentence", "unacceptable", "acceptable"),
    "sst2": _glue("sst2", "accuracy", "sentence", "negative", "positive"),
    "mrpc": _glue("mrpc", "accuracy", _PAIR, "not_equivalent", "equivalent"),
    "qqp": _glue("qqp", "accuracy", ("question1", "question2"), "not_duplicate", "duplicate"),
    "stsb": _glue("stsb", "spearman", _PAIR),
    "mnli": _glue("mnli", "accuracy", *_MNLI, test="validation_matched"),
    "mnli-mismatched": _glue("mnli", "accuracy", *_MNLI, test="validation_mismatched"),
    "qnli": _glue("qnli", "accuracy", ("question", "sentence"), *_ENTAILED),
    "rte": _glue("rte", "accuracy", _PAIR, *_ENTAILED),
    "wnli": _glue("wnli", "accuracy", _PAIR, "not_entailment", "entailment"),
    "20newsgroups": CatalogEntry("SetFit/20_newsgroups", "accuracy", validation=None),
    "sms-spam": CatalogEntry(
        "ucirvine/sms_spam", "f1_macro", text="sms", label_names=("ham", "spam"), validation=None, test=None
    ),
    "conll2003": _words("eriktks/conll2003", "f1", "ner_tags", *_CONLL_TAGS),
    "conll2003-pos": _words("eriktks/conll2003", "accuracy", "pos_tags", tags="1"),
    "wnut2017": _words("leondz/wnut_17", "f1", "ner_tags", *_WNUT_TAGS),
    "acceptability-demo": CatalogEntry(EMBEDDED, "matthews"),
    "inference-demo": CatalogEntry(EMBEDDED, "accuracy", text=("first", "second")),
    "similarity-demo": CatalogEntry(EMBEDDED, "pearson", text=("first", "second")),
    "entities-demo": CatalogEntry(EMBEDDED, "f1", text="words"),
    "word-classes-demo": CatalogEntry(EMBEDDED, "accuracy", text="words"),
}
