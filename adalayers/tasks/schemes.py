"""Schemes of entity tags: how a tag such as `B-PER` is read, as a place in an entity and the entity's type.

A scheme is recognised from all tags of a dataset. IO, IOB (IOB1 and IOB2) and IOE are scored as conlleval does: what
follows no entity of its type starts one. IOBES, BILOU and BMES are scored strictly: an entity begins with its first tag
and ends with its last, and other runs of tags are none.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adalayers.errors import BadInput
from adalayers.escaping import listed, visible

OUTSIDE = "O"
NAMELESS = "_"
"""The type of entities whose tags name none: `B`, `I`, `O`. It is seqeval's name for it."""

_NAMES = {
    "I": "IO",
    "BI": "IOB",
    "IE": "IOE",
    "BIES": "IOBES",
    "BILU": "BILOU",
    "BMES": "BMES",
    "BMEW": "BMEWO",
}
"""Schemes by their letters; of several that have all letters of the tags, the first is meant."""
_STRICT = ("IOBES", "BILOU", "BMES", "BMEWO")
_RENAMED = {"L": "E", "U": "S", "M": "I", "W": "S"}
"""Letters by what IOBES calls the same place."""
_OUTSIDE = {"O", "OUT", "OUTSIDE", "OTHER", "NONE", "NULL", "NIL", "NA", "N/A", "_", "-", "0", ""}
"""Tags, in capitals, that are known to stand for no entity where nothing but the tags themselves says so."""
_OUTSIDE_TYPES = {"O", "OUT", "OUTSIDE", ""}
"""Those that tell types without letters from classes of words, which may be "_" or "NONE" too."""

_SEPARATOR = r"(?P<separator>\s*(?P<mark>[^\w\s]|_)(?P=mark)*\s*|\s+)"
_LETTER = r"(?P<letter>[BIEMSLUW])"
_SPELLINGS = {
    "prefix": re.compile(rf"{_LETTER}{_SEPARATOR}(?P<type>\S.*)", re.IGNORECASE | re.DOTALL),
    "suffix": re.compile(rf"(?P<type>.*?\S){_SEPARATOR}{_LETTER}", re.IGNORECASE | re.DOTALL),
    "joined": re.compile(rf"{_LETTER}(?P<separator>)(?P<type>\S.*)", re.DOTALL),
    "letter": re.compile(rf"{_LETTER}(?P<separator>)(?P<type>)", re.IGNORECASE),
}


@dataclass(frozen=True)
class Scheme:
    """How the tags of a dataset are read.

    Attributes:
        name: IO, IOB, IOE, IOBES, BILOU, BMES or BMEWO; "" for runs of equal labels.
        places: By tag its place in an entity (B, I, E, S, as IOBES names it) and the entity's type; tags for no entity
            are not in it.
        outside: The tags for no entity: one as a rule, none where every word is in an entity.
    """

    name: str
    places: Mapping[str, tuple[str, str]]
    outside: tuple[str, ...] = ()

    @property
    def strict(self) -> bool:
        """Whether only whole entities count, from their first tag to their last."""
        return self.name in _STRICT

    @property
    def types(self) -> tuple[str, ...]:
        """The types of entities, in the order of their names."""
        return tuple(sorted({name for _, name in self.places.values()}))

    def __str__(self) -> str:
        outside = f"{' and '.join(map(repr, self.outside))} for no entity" if self.outside else ""
        how = "scored strictly" if self.strict else "scored as conlleval does"
        return ", ".join(filter(None, (f"{self.name} tags", outside, how)))


def scheme_or_runs(tags: Iterable[str]) -> Scheme:
    """Return the scheme of tags that a study has accepted.

    Of tags that follow none a run of one label is an entity of that type, but for O.
    """
    names = tuple(tags)
    with contextlib.suppress(BadInput):
        if scheme := scheme_of(names):
            return scheme
    return Scheme("", {tag: ("I", tag) for tag in names if tag != OUTSIDE}, (OUTSIDE,))


@functools.lru_cache(maxsize=64)
def scheme_of(tags: tuple[str, ...], where: str = "the data") -> Scheme | None:
    """Return the scheme that all tags of a dataset fit, None where they are classes of words instead.

    Args:
        tags: All that occur or are declared.
        where: What messages call their place.

    Raises:
        BadInput: If they are tags of entities of which some fit no scheme.
    """
    readings = [_Reading.of(tags, name) for name in _SPELLINGS]
    fitting = [reading for reading in readings if reading.fits]
    if fitting:
        # "B-B" and "I-B" are of one type by their prefixes, and of two by their suffixes.
        return min(fitting, key=lambda reading: (not reading.begins, len(reading.types))).scheme()
    outside = tuple(tag for tag in tags if _plain(tag) in _OUTSIDE_TYPES)
    for reading in readings[:2]:
        if reading.paired or (outside and reading.spelling == "prefix" and reading.parsed):
            raise reading.misfit(tags, where)
    types = {tag: ("I", tag) for tag in tags if tag not in outside}
    if len({*map(_plain, outside)}) > 1:
        raise BadInput(
            f"wanted one tag for no entity in {where}, got {listed(map(visible, outside))}; make them one"
        )
    return Scheme("IO", types, outside) if outside and types else None


@dataclass(frozen=True)
class _Reading:
    """Tags by one way of spelling them.

    Attributes:
        spelling: Its name.
        parsed: By tag its letter, in capitals, and its type.
        rest: Tags that are spelt otherwise.
    """

    spelling: str
    parsed: Mapping[str, tuple[str, str]]
    rest: tuple[str, ...]

    @classmethod
    def of(cls, tags: tuple[str, ...], spelling: str) -> _Reading:
        found = {tag: match for tag in tags if (match := _SPELLINGS[spelling].fullmatch(tag.strip()))}
        separators = {
            tag: match["separator"].strip() or match["separator"][:1] for tag, match in found.items()
        }
        separator = Counter(separators.values()).most_common(1)[0][0] if found else ""
        parsed = {
            tag: (match["letter"].upper(), match["type"] or NAMELESS)
            for tag, match in found.items()
            if separators[tag] == separator
        }
        return cls(spelling, parsed, tuple(tag for tag in tags if tag not in parsed))

    @property
    def letters(self) -> set[str]:
        return {letter for letter, _ in self.parsed.values()}

    @property
    def types(self) -> set[str]:
        return {name for _, name in self.parsed.values()}

    @property
    def name(self) -> str:
        """The scheme that has these letters; "" for none."""
        return next((name for letters, name in _NAMES.items() if self.letters <= {*letters}), "")

    @property
    def begins(self) -> bool:
        """Whether an entity can begin: of all letters, B is missing only where I is alone."""
        return "B" in self.letters or self.letters == {"I"}

    @property
    def paired(self) -> bool:
        """Whether a type occurs with two letters, as words hardly do by chance."""
        return len({*self.parsed.values()}) > len(self.types)

    @property
    def fits(self) -> bool:
        """Whether all tags fit one scheme, and not by chance."""
        outside, usual = bool(self.rest), all(_plain(tag) in _OUTSIDE for tag in self.rest)
        if not self.parsed or not self.name or len({*map(_plain, self.rest)}) > 1:
            return False
        if self.spelling == "letter":
            return usual and self.begins and (outside or self.paired)
        if self.spelling == "joined":
            begun = {name for letter, name in self.parsed.values() if letter in "BSUW"}
            return usual and outside and self.paired and begun == self.types
        return self.paired or (usual and (outside or self.begins))

    def scheme(self) -> Scheme:
        """Return how tags that fit are read."""
        places = {tag: (_RENAMED.get(letter, letter), name) for tag, (letter, name) in self.parsed.items()}
        return Scheme(self.name, places, self.rest)

    def misfit(self, tags: tuple[str, ...], where: str) -> BadInput:
        """Return the error that names what does not fit."""
        odd = [tag for tag in self.rest if _plain(tag) not in _OUTSIDE]
        if not self.name:
            why = f"no scheme has the letters {', '.join(sorted(self.letters))}"
        else:
            why = f"{listed(map(visible, odd or self.rest))} {'not of it' if odd else 'both for no entity'}"
        return BadInput(
            f"wanted the tags of one scheme in {where} (IO, IOB, IOBES, BILOU or BMES, with one tag for no entity), "
            f"got {listed(map(visible, tags))}: {why}; rename what does not fit"
        )


def _plain(tag: str) -> str:
    return tag.strip().upper()
