"""Tags of entities: the scheme that all of them follow; `test_metrics` holds what they count by it to seqeval."""

import pytest

from adalayers.tasks.schemes import scheme_of, scheme_or_runs
from tests.helpers.refusing import refused


def spelt(letters: str, form: str = "{0}-{1}", *types: str) -> tuple[str, ...]:
    return tuple(form.format(letter, name) for letter in letters for name in types or ("PER", "LOC"))


TYPES = ("LOC", "PER")
READ = {
    ("O", *spelt("I")): ("IO", TYPES, ("O",)),
    ("O", *spelt("BI")): ("IOB", TYPES, ("O",)),
    spelt("BI"): ("IOB", TYPES, ()),
    ("O", *spelt("IE")): ("IOE", TYPES, ("O",)),
    ("O", *spelt("BIES")): ("IOBES", TYPES, ("O",)),
    ("O", *spelt("BILU")): ("BILOU", TYPES, ("O",)),
    ("O", *spelt("BMES")): ("BMES", TYPES, ("O",)),
    ("O", *spelt("BMEW")): ("BMEWO", TYPES, ("O",)),
    # Spelling
    ("o", *spelt("bilu", "{}/{}", "per", "loc")): ("BILOU", ("loc", "per"), ("o",)),
    ("O", *spelt("BI", "{0}_{1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{0}{1}")): ("IOB", TYPES, ("O",)),
    ("O", *spelt("BI", "{1} {0}", "creative work")): ("IOB", ("creative work",), ("O",)),
    ("B-PER ", " I-PER", "O"): ("IOB", ("PER",), ("O",)),
    # Types that look like something else
    ("O", *spelt("BI", "{0}-{1}", "work-of-art", "day")): ("IOB", ("day", "work-of-art"), ("O",)),
    ("O", "B-E", "B-I"): ("IOB", ("E", "I"), ("O",)),
    ("O", *spelt("BI", "{1}-{0}", "S-1", "M")): ("IOB", ("M", "S-1"), ("O",)),
    ("O", *spelt("BI", "{1}-{0}", "B-cell", "T-cell")): ("IOB", ("B-cell", "T-cell"), ("O",)),
    ("O", "PER", "B"): ("IO", ("B", "PER"), ("O",)),
    ("", "PER"): ("IO", ("PER",), ("",)),
    ("B", "I", "O"): ("IOB", ("_",), ("O",)),
    ("B", "M", "E", "S"): ("BMES", ("_",), ()),
    **{(outside, *spelt("BI")): ("IOB", TYPES, (outside,)) for outside in ("", "_", "none", "OUT", "0", "X")},
}


@pytest.mark.parametrize(("tags", "read"), READ.items(), ids=[" ".join(tags) for tags in READ])
def test_schemes(tags, read):
    scheme = scheme_of(tags)
    assert (scheme.name, scheme.types, scheme.outside) == read
    assert scheme.strict == (scheme.name in ("IOBES", "BILOU", "BMES", "BMEWO"))
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
        (("O", "B-PER", "I_PER"), "I_PER not of it"),
        (("O", "B-PER", "I-PER", "C-PER"), "C-PER not of it"),
        (("B-PER", "I-PER", "NN", "VB"), "NN, VB not of it"),
        (("O", "", "B-PER", "I-PER"), "O, '' both for no entity"),
        (("O", "", "PER"), "got O, ''; make them one"),
    ],
)
def test_tags_that_fit_no_scheme_are_named(tags, odd):
    refused(f"column 'tags'.*{odd}", scheme_of, tags, "column 'tags'")
