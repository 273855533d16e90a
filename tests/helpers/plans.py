"""Golden plans: all that every study plans on shapes without a backbone, its arms, searches and comparisons.

After a change of a study, rewrite them and read the difference:

    python -m tests.helpers.plans && git diff tests/golden/plans
"""

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from adalayers.states import Settings, Stream
from adalayers.study import Setting
from tests.helpers.golden import GOLDEN
from tests.helpers.planning import planned, planned_arms, setting_of
from tests.helpers.states import made_shape

PLANS = GOLDEN / "plans"
STUDIES = sorted(path.stem for path in (GOLDEN.parents[1] / "studies").glob("[!_]*.py"))

ENCODER, DECODER = Stream("encoder", 6), Stream("decoder", 6)
TEXTS = made_shape("sequence", 3, layers=6, width=384)
WORDS = dataclasses.replace(TEXTS, head="token", n_outputs=9)
BART = dataclasses.replace(TEXTS, streams=(ENCODER, DECODER), family="bart")
GPT2 = dataclasses.replace(TEXTS, streams=(DECODER,), family="gpt2")

EVERY: dict[str, dict[str, Any]] = {"texts": {"shape": TEXTS, "dataset": "cola"}, "words": {"shape": WORDS}}
FIXED = {"batch_size": 32, "hidden_states": "layers:1,6"}
MORE: dict[str, dict[str, dict[str, Any]]] = {
    "ablation": {"no positions": {"shape": TEXTS, "dataset": "imdb"}},
    "alpha_lambda": {"a rate of the mix": {"shape": TEXTS, "dataset": "another", "mix_lr": 0.01}},
    "cutoff": {"after training alone": {"shape": TEXTS, "cutoff_when": "after-training"}},
    "decoder_layers": {
        "both": {"shape": BART},
        "a decoder": {"shape": GPT2},
        "a decoder's words": {"shape": dataclasses.replace(GPT2, head="token")},
    },
    "few_shot": {
        "whole": {"shape": WORDS, "own": {"protocol": "whole"}, "epochs": 8, "pool": 14_000},
        "most epochs": {"shape": WORDS, "pool": 14_000},
        "a small pool": {"shape": WORDS, "pool": 200, "epochs": 4},
        "a tiny pool": {"shape": WORDS, "pool": 20, "epochs": 1},
        "fixed": {"shape": WORDS, "fusion": "dwatt", "train_examples": 64},
        "two classes of words": {"shape": dataclasses.replace(WORDS, n_outputs=2)},
    },
    "layer_spans": {"both": {"shape": BART, "stream": "both"}},
    "methods": {
        "some": {"shape": TEXTS, "own": {"methods": "layer-graph tokens-first-gate-at-own-width layer"}},
        "one": {"shape": TEXTS, "own": {"methods": "concat-as-published"}},
        "at a rate": {"shape": TEXTS, "own": {"methods": "single-layer"}, "lr": 1e-3},
    },
    "published": {
        "imdb": {"shape": TEXTS, "dataset": "imdb", "epochs": 200},
        "another, fixed": {"shape": WORDS, "dataset": "mine", **FIXED},
    },
    "single_layer": {"a layer": {"shape": TEXTS, "layer": 2}},
    "small_data": {
        "alpha": {"shape": TEXTS, "alpha": 8.0},
        "cutoff": {"shape": TEXTS, "cutoff": 0.02},
        "mix": {"shape": TEXTS, "mix": "uniform"},
    },
    "width": {"a layer": {"shape": TEXTS, "layer": 6}},
}
"""What else a study is planned on, where its plan depends on it."""


def plans(name: str) -> str:
    """Return what a study plans, on all that it is planned on."""
    study = importlib.import_module(f"studies.{name}").STUDY
    lines: list[str] = []
    for case, how in {**EVERY, **MORE.get(name, {})}.items():
        if study.task_kind in (None, "sequence" if how["shape"].head == "sequence" else "word"):
            lines += [f"== {case}", *_told(study, setting_of(study, **how)), ""]
    return "\n".join(lines)


def _told(study: Any, setting: Setting) -> Iterator[str]:
    """Yield a line for each part of a plan; a configuration is what tells it from the defaults."""
    made = planned(study, setting)
    yield from (f"note {note}" for note in made.notes)
    for arm in made.arms:
        names = "".join(f" ({name} {value})" for name in NAMES if (value := getattr(arm, name)))
        yield f"arm {arm.name} [{arm.role}]{names}: {_words(arm.config.identity(setting.shape))}"
    yield from (f"dropped {name}: {why}" for name, why in made.dropped)
    for search in made.searches:
        names = f"{search.becomes} [{search.role}], {search.min_trials} at least"
        yield f"search {search.name} -> {names}: {_words(search.base.identity(setting.shape))}"
        for name, domain in search.space.domains.items():
            values = getattr(domain, "categories", None) or f"{domain.lower:g} to {domain.upper:g}"
            yield f"    {name}: {values}; grid {search.space.grid.get(name)}"
        yield from (f"    first {_words(point)}" for point in search.first)
        yield from (f"    note {note}" for note in search.notes)
    used = {name for arm in made.arms for name in ("fusion", *arm.config.used(setting.shape))}
    factors = [factor.name for factor in study.design.factors if factor.name in used]
    known = planned_arms(made, setting.shape)
    for search in made.searches:
        becomes = {"name": search.becomes, "role": search.role, "tunes": (search.name,), "against": None}
        known.append(dataclasses.replace(known[0], **becomes))
    planned_pairs = study.design.planned(known, factors, made.control)
    yield f"interactions {sum(pair.kind == 'interaction' for pair in planned_pairs)}"
    for pair in (pair for pair in planned_pairs if pair.kind != "interaction"):
        cells = "" if pair.kind == "arm" else f" over {len(pair.weights)} arms"
        arm, control, at = pair.names
        rank = "primary" if pair.primary else "compared"
        yield f"{rank} {pair.kind} {arm} | {control}{at and f' | {at}'}{cells}"
    yield from (f"variant {variant.name}" for variant in made.variants)
    for record in made.published:
        yield f"published {_words({name: value for name, value in vars(record).items() if value})}"


NAMES = ("aliases", "label", "words")


def _words(values: Mapping[str, Any] | Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


if __name__ == "__main__":
    PLANS.mkdir(exist_ok=True)
    for each in STUDIES:
        (PLANS / f"{each}.txt").write_text(plans(each), encoding="utf-8")
