"""Does the method work over the states of a decoder, and how are they read? (Open question 4.)

Question    Does the method work over the hidden states of a decoder: encoder, decoder or both, which depth, and how
            should texts or words be read from them?
Scientific  stream, hidden_states, and read_out for texts or word_position for words
Nuisance    lr and mix_lr, in a search that --trials adds; none otherwise
Fixed       everything else, at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      factorial: every arm x --seeds, unpruned; no search unless --trials is given
Command     python studies/decoder_layers.py --backbone bart-large-cnn t5-base gpt2 --dataset cola
Result      so far, SmolLM2-135M on 2,000 sentences of CoNLL-2003 (docs/answers.md): a mix of all 30 layers is better
            than one of the lower or upper half, by 0.020 and 0.018 F1, and than the last layer, by 0.118

The streams:
    A frozen backbone gives hidden states: those of an encoder, of a decoder, or of both, which the layer mix adds up
    after projecting each. Projections, mix and head are trained, the backbone is not. Half a stream is its first or
    second half of layers.

What a causal state can and cannot know:
    A decoder reads from left to right. The state of a token holds what that token and those before it say, and
    nothing of what follows. At the first token of a text next to nothing is known of it, at the last one all of it:
    of all single tokens only the last can stand for a whole text, and a mean over tokens counts early ones, which
    have seen little. A word is tagged without what follows it, and no reading of causal states can change that: a
    name whose kind the words after it tell stays open. Of a word of several tokens only the last one has seen the
    whole word. The heads are not causal: where one attends (`read_out=attention`, and the head of tokens) it lets a
    token look at states to its right, each of which was still computed without what follows it.

What a decoder behind an encoder can know:
    The decoder of an encoder-decoder model attends to the encoder's last states at each of its places, and so to the
    whole text; among its own tokens it looks to the left alone. It reads the text itself, moved one place to the
    right, as in training. That its states know the end of a text from the start on is the encoder's doing: what they
    score beyond the encoder's own is what the decoder adds.
"""

from typing import Any

from adalayers.command.main import main
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Factor, Setting, Study, crossed

ENCODER, DECODER = "encoder", "decoder"


def streams(setting: Setting) -> list[str]:
    """Return what of the backbone can be mixed: of one with an encoder and a decoder each of them, and both."""
    names = [stream.name for stream in setting.shape.streams]
    return setting.levels("stream", [*names, "both"]) if len(names) > 1 else names


def reading(setting: Setting) -> tuple[str, list[Any]]:
    """Return the hyperparameter by which texts or words are read, and its levels, that of the field first."""
    from search_spaces.decoder_layers import POOLINGS, POSITIONS

    if not setting.shape.per_token:
        return "read_out", setting.levels("read_out", POOLINGS)
    causal = setting.shape.streams[0].name == DECODER
    return "word_position", setting.levels("word_position", POSITIONS[::-1] if causal else POSITIONS)


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return stream x depth x reading, the thesis's own first, then each stream's last layer and first token alone.

    The first token of an encoder stands for its text in models pretrained so. That of a causal stream has seen nothing
    but itself: what it scores is a floor, not a rival. Each is compared with the whole mix of its stream.
    """
    from search_spaces.decoder_layers import DEPTHS, POSITIONS

    names, (how, levels) = streams(setting), reading(setting)
    several = len(setting.shape.streams) > 1
    factors = {"stream": names} if several else {}
    core = crossed(setting, {**factors, "hidden_states": DEPTHS, how: levels}, {})
    last: list[Arm] = []
    first: list[Arm] = []
    for stream in [name for name in names if name != "both"]:
        own: Settings = {"stream": stream} if several else {}
        # As in the field: of a decoder's words the last token, which alone has seen all of one.
        of_words = stream == DECODER and how == "word_position" and POSITIONS[-1] in levels
        read = {**own, how: POSITIONS[-1] if of_words else levels[0]}
        whole = {**read, "hidden_states": setting.levels("hidden_states", DEPTHS)[0]}
        mix, words = tuple(arm.name for arm in core if arm.overrides == whole), f"{stream}'s last layer"
        last.append(Arm(f"last layer, {stream}", "last", {**read, "mix": "last"}, words=words, against=mix))
        token = {**own, "read_out": "first-token"}
        if stream == ENCODER:
            first.append(Arm(f"first token, {stream}", "first-token", token, against=mix))
        else:
            first.append(Arm(f"first token, {stream}", "floor", token, against=(), secondary=mix))
    return [*core, *last, *([] if setting.shape.per_token else first)], _notes(setting)


def _notes(setting: Setting) -> list[str]:
    names = [stream.name for stream in setting.shape.streams]
    if names == [DECODER]:
        return [
            "This backbone is a decoder alone: there is no encoder to compare with, but on another backbone."
        ]
    if DECODER not in names:
        return ["This backbone has no decoder: the page says which depth and which reading suit its encoder."]
    return [
        "The decoder's states cost a pass through the encoder as well: what both have is compared at equal price, the "
        "encoder alone is cheaper."
    ]


STUDY = Study(
    name="decoder_layers",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            Factor("stream", "stream", "whose states are mixed", scale="choice"),
            Factor("hidden_states", "depth", "which layers of a stream", scale="choice"),
            Factor("read_out", "reading", "how a text is read", scale="choice"),
            Factor("word_position", "word's token", "which token answers for a word", scale="choice"),
        ),
    ),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
