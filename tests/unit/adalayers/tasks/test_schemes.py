"""Tags of entities: the scheme that all of them follow, and what they count by it, against seqeval and by hand."""

import pytest
from seqeval.metrics import f1_score
from seqeval.scheme import BILOU, IOBES

from adalayers.errors import BadInput
from adalayers.tasks.metrics import token_scores
from adalayers.tasks.schemes import scheme_of, scheme_or_runs


def spelt(letters: str, form: str = "{0}-{1}", *types: str) -> tuple[str, ...]:
    return tuple(form.format(letter, name) for letter in letters for name in types or ("PER", "LOC"))


TYPES = ("LOC", "PER")
READ = {
    ("O", *spelt("I")): ("IO", TYPES, ("O",)),
    ("O", *spelt("BI")): ("IOB", TYPES, ("O",)),
    spelt("BI"): ("IOB", TYPES, ()),
    ("O", *spelt("B")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("IE")): ("IOE", TYPES, ("O",)),
    ("O", *spelt("BIES")): ("IOBES", TYPES, ("O",)),
    ("O", *spelt("S")): ("IOBES", TYPES, ("O",)),
    ("O", *spelt("BILU")): ("BILOU", TYPES, ("O",)),
    ("O", *spelt("UL")): ("BILOU", TYPES, ("O",)),
    ("O", *spelt("BMES")): ("BMES", TYPES, ("O",)),
    ("O", *spelt("BMEW")): ("BMEWO", TYPES, ("O",)),
    # Spelling
    ("o", *spelt("bilu", "{}/{}", "per", "loc")): ("BILOU", ("loc", "per"), ("o",)),
    ("O", *spelt("BI", "{1}_{0}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{0}_{1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{0}:{1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{0} {1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{0} - {1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{0}--{1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BIES", "{1}.{0}")): ("IOBES", TYPES, ("O",)),
    ("O", *spelt("BI", "{1} {0}", "creative work")): ("IOB", ("creative work",), ("O",)),
    ("B-PER ", " I-PER", "O"): ("IOB", ("PER",), ("O",)),
    # Types that look like something else
    ("O", *spelt("BI", "{0}-{1}", "work-of-art", "day")): ("IOB", ("day", "work-of-art"), ("O",)),
    ("O", *spelt("BI", "{0}-{1}", "B")): ("IOB", ("B",), ("O",)),
    ("O", *spelt("BI", "{0}-{1}", "S", "I")): ("IOB", ("I", "S"), ("O",)),
    ("O", *spelt("BI", "{0}-{1}", "S-1")): ("IOB", ("S-1",), ("O",)),
    ("O", *spelt("BI", "{1}-{0}", "S-1", "M")): ("IOB", ("M", "S-1"), ("O",)),
    ("O", *spelt("BI", "{1}-{0}", "B-cell", "T-cell")): ("IOB", ("B-cell", "T-cell"), ("O",)),
    ("O", "PER", "B"): ("IO", ("B", "PER"), ("O",)),
    ("O", "vitamin-B", "food"): ("IO", ("food", "vitamin-B"), ("O",)),
    ("o", "person"): ("IO", ("person",), ("o",)),
    ("", "PER"): ("IO", ("PER",), ("",)),
    # Letters alone
    ("B", "I", "O"): ("IOB", ("_",), ("O",)),
    ("b", "i", "o"): ("IOB", ("_",), ("o",)),
    ("B", "M", "E", "S"): ("BMES", ("_",), ()),
    # Tags for no entity
    **{(outside, *spelt("BI")): ("IOB", TYPES, (outside,)) for outside in ("", "_", "none", "OUT", "0", "X")},
}


@pytest.mark.parametrize(("tags", "read"), READ.items(), ids=[" ".join(tags) for tags in READ])
def test_schemes(tags, read):
    scheme = scheme_of(tags)
    assert (scheme.name, scheme.types, scheme.outside) == read
    assert scheme_of(tags[::-1]).places == scheme.places


@pytest.mark.parametrize(
    "tags",
    [("NOUN", "VERB", "-LRB-"), ("1", "2", "3"), ("N-ACC", "S-BAR", "PRP$"), ("A-1", "B-1", "B-2", "C-1")],
)
def test_classes_of_words_follow_none(tags):
    assert scheme_of(tags) is None
    assert scheme_or_runs(tags).types == tuple(sorted(tags))


@pytest.mark.parametrize(
    ("tags", "odd"),
    [
        (("O", *spelt("BILS", "{}-{}", "PER")), "no scheme has the letters B, I, L, S"),
        (("O", *spelt("BIU", "{}-{}", "PER"), "S-PER"), "no scheme has the letters B, I, S, U"),
        (("O", "B-PER", "I_PER"), "I_PER not of it"),
        (("O", "B-PER", "I-PER", "LOC"), "LOC not of it"),
        (("O", "B-PER", "LOC", "ORG"), "LOC, ORG not of it"),
        (("O", "X", "B-PER", "I-PER"), "X not of it"),
        (("O", "B-PER", "I-PER", "C-PER"), "C-PER not of it"),
        (("B-PER", "I-PER", "NN", "VB"), "NN, VB not of it"),
        (("O", "", "B-PER", "I-PER"), "O, '' both for no entity"),
        (("O", "", "PER"), "got O, ''; make them one"),
    ],
)
def test_tags_that_fit_no_scheme_are_named(tags, odd):
    with pytest.raises(BadInput, match=f"column 'tags'.*{odd}"):
        scheme_of(tags, "column 'tags'")


def f1(gold: str, said: str, *tags: str) -> float:
    scheme = scheme_of((*dict.fromkeys((*gold.split(), *said.split(), *tags)),))
    return token_scores([gold.split()], [said.split()], scheme)["f1"]


@pytest.mark.parametrize(
    ("gold", "said", "wanted"),
    [
        ("B-X L-X O U-X", "B-X L-X O U-X", 1.0),
        ("B-X I-X L-X O U-X", "B-X L-X I-X O U-X", 1 / 2),  # of U-X and B-X L-X one is right
        ("B-X L-X U-X", "B-X I-X U-X", 2 / 3),  # what does not end is no entity
        ("B-X L-X U-X O", "L-X L-X U-X I-X", 2 / 3),  # nor is what does not begin
        ("U-X U-X", "B-X L-X", 0.0),
    ],
)
@pytest.mark.parametrize(
    ("theirs", "form", "last", "single"),
    [(BILOU, "{0}-{1}", "L", "U"), (IOBES, "{0}-{1}", "E", "S"), (IOBES, "{1}_{0}", "E", "S")],
)
def test_strict_schemes_count_whole_entities_as_seqeval_does(gold, said, wanted, theirs, form, last, single):
    letters = {"B": "B", "I": "I", "L": last, "U": single}

    def renamed(tags: str, form: str) -> str:
        return " ".join(tag if tag == "O" else form.format(letters[tag[0]], tag[2:]) for tag in tags.split())

    usual = [[renamed(tags, "{0}-{1}").split()] for tags in (gold, said)]
    assert f1_score(*usual, mode="strict", scheme=theirs) == pytest.approx(wanted)
    every = spelt(f"BI{last}{single}", form, "X")
    assert f1(renamed(gold, form), renamed(said, form), *every) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("gold", "said", "wanted"),
    [
        ("I-X I-X O", "I-X I-X O", 1.0),
        ("I-X B-X O", "I-X I-X O", 0.0),  # IOB1: B divides two entities
        ("I-X B-X O", "B-X B-X O", 1.0),
        ("B-X I-X I-Y", "B-X I-X B-Y", 1.0),
    ],
)
def test_io_and_iob_are_scored_as_conlleval_does(gold, said, wanted):
    assert f1(gold, said, "O", "B-X", "I-X") == f1_score([gold.split()], [said.split()]) == wanted
