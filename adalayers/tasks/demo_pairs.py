"""The embedded corpora `inference-demo` and `similarity-demo`: pairs of sentences, generated here from fixed seeds.

As the other embedded corpora they serve demonstration only, and no sentence is taken from anywhere.

`inference()`: does the first sentence say that the second is true (entailment), that it is false (contradiction), or
neither (neutral)? The second is made from the first: something is left out, turned into the passive or said of more
people; or its polarity is turned; or something is added, exchanged, or the two people change places. As many first
sentences are negated as not, so that a negation in the second alone says nothing. 3 of 100 labels are drawn anew.

`similarity()`: how much alike are two sentences in what they say, from 0 to 5? Both have an actor, an action, a thing
and a place; each of the four is the same, a near synonym, of one group, or unrelated. The similarity is the weighted
mean of what the four have in common, less where one sentence is negated, with a little noise. Voice changes nothing.

How hard: the layer mix on all-MiniLM-L6-v2 at its defaults, 8 epochs, seed 0, one run each, test. Inference, accuracy:
0.79 with a learned mix, 0.71 with the last layer alone. Similarity, Pearson correlation: 0.90 and 0.88.
"""

from __future__ import annotations

from collections.abc import Sequence

from adalayers.tasks.demo_data import (
    ADJUNCTS,
    HANDLE,
    PEOPLE,
    THING_ADJECTIVES,
    THINGS,
    TREAT,
    Draw,
    fill_splits,
)

INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
INFERENCE_SEED, SIMILARITY_SEED = 20250214, 20250307
INFERENCE_NOISE = 0.03
MOST_ALIKE = 5.0


def inference() -> dict[str, list[tuple[tuple[str, str], int]]]:
    """Pairs of sentences with an index into `INFERENCE_LABELS`, by split; always the same."""
    return fill_splits(Draw(INFERENCE_SEED), _inference_example, _key)


def similarity() -> dict[str, list[tuple[tuple[str, str], float]]]:
    """Pairs of sentences with their similarity, 0 to 5, by split; always the same."""
    return fill_splits(Draw(SIMILARITY_SEED), _similarity_example, _key)


def _key(example: tuple[tuple[str, str], float]) -> str:
    return " ~ ".join(example[0]).lower()


# ------------------------------------------------------------------------------------------------------------
# Inference: a scene of parts, and what can be done to it.

Scene = dict[str, str]
"""subject, verb and object of a sentence, its adjective and adjunct ("" for none), whether it is negated, and voice."""


def _inference_example(draw: Draw) -> tuple[tuple[str, str], int]:
    scene = _scene(draw)
    label = draw.below(3)
    other = (_entailed, _neutral, _contradicted)[label](draw, scene)
    if draw.chance(INFERENCE_NOISE):
        label = draw.below(3)
    return (_said(scene), _said(other)), label


def _scene(draw: Draw) -> Scene:
    treats = draw.chance(0.4)
    base, _, past, participle, _ = draw.pick(TREAT if treats else HANDLE)
    actor, other = _two(draw, [noun[0] for noun in PEOPLE])
    return {
        "subject": f"the {actor}",
        "base": base,
        "past": past,
        "participle": participle,
        "object": other if treats else draw.pick(THINGS)[0],
        "adjective": draw.pick(PEOPLE_ADJECTIVES if treats else THING_ADJECTIVES),
        "adjunct": draw.pick(ADJUNCTS),
        "negated": "yes" if draw.chance(0.5) else "",
        "passive": "yes" if draw.chance(0.3) else "",
    }


PEOPLE_ADJECTIVES = ("tall", "old", "young", "clever", "tired", "famous", "nervous", "polite")


def _said(scene: Scene) -> str:
    thing = " ".join(filter(None, ["the", scene["adjective"], scene["object"]]))
    if scene["passive"]:
        was = "was not" if scene["negated"] else "was"
        words = [thing, was, scene["participle"], "by", scene["subject"], scene["adjunct"]]
    else:
        verb = f"did not {scene['base']}" if scene["negated"] else scene["past"]
        words = [scene["subject"], verb, thing, scene["adjunct"]]
    text = " ".join(filter(None, words))
    return f"{text[0].upper()}{text[1:]}."


def _entailed(draw: Draw, scene: Scene) -> Scene:
    """Less of what did happen; what did not happen, in the other voice: less of it might well have happened."""
    turned = {**scene, "passive": "" if scene["passive"] else "yes"}
    if scene["negated"]:
        return turned
    less = draw.pick(
        [{"adjunct": ""}, {"adjective": ""}, {"adjunct": "", "adjective": ""}, {"subject": "someone"}]
    )
    return {**(turned if draw.chance(0.5) else scene), **less}


def _contradicted(draw: Draw, scene: Scene) -> Scene:
    """The same with its polarity turned, whichever voice it is in."""
    turned = {**scene, "negated": "" if scene["negated"] else "yes"}
    if draw.chance(0.5):
        turned["passive"] = "" if scene["passive"] else "yes"
    # That something is not so may be said of less; what is denied is denied as a whole.
    if not turned["negated"]:
        return turned
    return {**turned, **draw.pick([{}, {"adjunct": ""}, {"adjective": ""}])}


def _neutral(draw: Draw, scene: Scene) -> Scene:
    """Another actor, thing, action, place or kind of thing, of which nothing was said, with either polarity."""
    others = _scene(draw)
    while others["base"] == scene["base"] or others["object"] == scene["object"]:
        others = _scene(draw)
    same_kind = (others["object"] in _ACTORS) == (scene["object"] in _ACTORS)
    changes: list[Scene] = [
        {"subject": others["subject"]},
        {"adjunct": _other(draw, ADJUNCTS, scene["adjunct"])},
    ]
    if same_kind:
        changes += [
            {"object": others["object"]},
            {name: others[name] for name in ("base", "past", "participle")},
        ]
    if scene["object"] in _ACTORS:
        changes.append({"subject": f"the {scene['object']}", "object": scene["subject"].removeprefix("the ")})
    change = draw.pick(changes)
    if change.get("subject") == scene["subject"]:
        change = {"adjunct": _other(draw, ADJUNCTS, scene["adjunct"])}
    return {
        **scene,
        **change,
        "negated": "yes" if draw.chance(0.5) else "",
        "passive": "yes" if draw.chance(0.4) else "",
    }


_ACTORS = {noun[0] for noun in PEOPLE}


def _other(draw: Draw, options: Sequence[str], than: str) -> str:
    return draw.pick([option for option in options if option != than])


def _two(draw: Draw, options: Sequence[str]) -> tuple[str, str]:
    first = draw.pick(options)
    return first, _other(draw, options, first)


# ------------------------------------------------------------------------------------------------------------
# Similarity: four parts, each of a group of synonyms within a group of like things.

# Groups are separated by `;`, near synonyms by `,`, pairs of synonyms by `/`.
ACTORS = (
    "doctor/physician, nurse/carer; thief/burglar, robber/bandit; child/kid, pupil/student; "
    "cook/chef, waiter/server"
)
ACTIONS = (
    "bought/purchased, sold/traded; repaired/fixed, broke/smashed; hid/concealed, found/discovered; "
    "carried/transported, dropped/released"
)
OBJECTS = (
    "car/automobile, lorry/truck; sofa/couch, chair/stool; stone/rock, pebble/boulder; "
    "painting/picture, photograph/photo"
)
PLACES = (
    "in the forest/in the woods, in the park/in the garden; at the shop/at the store, at the market/at the fair; "
    "near the sea/near the ocean, near the lake/near the pond"
)
SHARES = {"actor": 0.25, "action": 0.35, "object": 0.25, "place": 0.15}
"""How much of what a sentence says each part is."""
ALIKE = (1.0, 0.9, 0.45, 0.0)
"""Of the same part, of a synonym, of one of the same group, and of an unrelated one."""
NEGATED_SHARE = 0.5
"""What is left of the similarity where one sentence says that it did not happen."""
IRREGULAR = {"bought": "buy", "sold": "sell", "broke": "break", "hid": "hide", "found": "find"}
PARTICIPLES = {"broke": "broken", "hid": "hidden"}


def _groups(text: str) -> list[list[list[str]]]:
    """Groups of pairs of synonyms."""
    return [[pair.strip().split("/") for pair in group.split(",")] for group in text.split(";")]


PARTS = {
    "actor": _groups(ACTORS),
    "action": _groups(ACTIONS),
    "object": _groups(OBJECTS),
    "place": _groups(PLACES),
}


def _similarity_example(draw: Draw) -> tuple[tuple[str, str], float]:
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    alike = 0.0
    # How near the two are as a whole is drawn first: else few pairs would be very near or very far.
    near = draw.below(4)
    for part, groups in PARTS.items():
        how = near if draw.chance(0.6) else draw.below(4)
        first[part], second[part] = _words_at(draw, groups, how)
        alike += SHARES[part] * ALIKE[how]
    negated = draw.chance(0.15)
    if negated:
        alike *= NEGATED_SHARE
    which = draw.chance(0.5)
    sentences = (
        _sentence(first, draw.chance(0.3), negated and which),
        _sentence(second, draw.chance(0.3), negated and not which),
    )
    noise = 0.1 * sum(2 * draw.below(1000) / 999 - 1 for _ in range(3))
    return sentences, round(min(max(MOST_ALIKE * alike + noise, 0.0), MOST_ALIKE), 2)


def _words_at(draw: Draw, groups: list[list[list[str]]], how: int) -> tuple[str, str]:
    """Two words that are the same, synonyms, of one group, or of two groups: `how`, 0 to 3."""
    place = draw.below(len(groups))
    pair = draw.below(len(groups[place]))
    word = draw.below(2)
    first = groups[place][pair][word]
    if how == 0:
        return first, first
    if how == 1:
        return first, groups[place][pair][1 - word]
    if how == 2:
        return first, draw.pick(groups[place][1 - pair])
    other = groups[(place + 1 + draw.below(len(groups) - 1)) % len(groups)]
    return first, draw.pick(draw.pick(other))


def _base(past: str) -> str:
    return IRREGULAR.get(past, past.removesuffix("ed") + ("e" if past in _SILENT else ""))


_SILENT = {"purchased", "traded", "released"}
_DOUBLED = {"dropped": "drop", "carried": "carry", "smashed": "smash", "concealed": "conceal"}


def _sentence(parts: dict[str, str], passive: bool, negated: bool) -> str:
    past = parts["action"]
    if passive:
        was = "was not" if negated else "was"
        text = f"the {parts['object']} {was} {PARTICIPLES.get(past, past)} by the {parts['actor']} {parts['place']}"
    else:
        verb = f"did not {_DOUBLED.get(past) or _base(past)}" if negated else past
        text = f"the {parts['actor']} {verb} the {parts['object']} {parts['place']}"
    return f"{text[0].upper()}{text[1:]}."
