"""DRAFT"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
Pair = tuple[str, str]

SPLIT_SIZES = {"train": 2000, "validation": 400, "test": 400}
ACCEPTABILITY_LABELS = ("unacceptable", "acceptable")
ENTITY_LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")


class _Draw:
    """Seeded choices built on `Random.random` alone, the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def below(self, stop: int) -> int:
        return int(self._random() * stop)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def two(self, options: Sequence[T]) -> tuple[T, T]:
        """Two different members, in random order."""
        first = self.below(len(options))
        second = (first + 1 + self.below(len(options) - 1)) % len(options)
        return options[first], options[second]


# ---------------------------------------------------------------------------------------------------------------
# Acceptability: every construction gives a minimal pair (acceptable, unacceptable), of which one is kept.

ACCEPTABLE_SHARE = 0.6
LABEL_NOISE = 0.05


def _table(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in text.strip().split("\n")]


def _regular_nouns(text: str) -> list[tuple[str, ...]]:
    return [(noun, noun + "s") for noun in text.split()]


# Nouns are (singular, plural), verbs (base, third person, past, participle, -ing).
SINGULAR, PLURAL = 0, 1
BASE, THIRD, PAST, PARTICIPLE, ING = range(5)

PEOPLE = _regular_nouns(
    "baker nurse gardener clerk sailor painter singer farmer poet driver lawyer student waiter guard editor "
    "plumber cousin neighbour dentist pilot"
)
MEN = _regular_nouns("uncle brother king monk prince boy grandfather nephew wizard")
WOMEN = _regular_nouns("aunt sister queen nun girl grandmother niece bride daughter")
THINGS = _regular_nouns(
    "basket ladder letter lantern blanket drum map bicycle cake vase curtain photograph hammer violin carpet "
    "bottle mirror pillow helmet candle"
)
HANDLE = _table(
    """
    carry carries carried carried carrying
    repair repairs repaired repaired repairing
    find finds found found finding
    take takes took taken taking
    borrow borrows borrowed borrowed borrowing
    inspect inspects inspected inspected inspecting
    fetch fetches fetched fetched fetching
    throw throws threw thrown throwing
    hold holds held held holding
    buy buys bought bought buying
    bring brings brought brought bringing
    """
)
TREAT = _table(
    """
    greet greets greeted greeted greeting
    praise praises praised praised praising
    thank thanks thanked thanked thanking
    blame blames blamed blamed blaming
    warn warns warned warned warning
    trust trusts trusted trusted trusting
    admire admires admired admired admiring
    see sees saw seen seeing
    know knows knew known knowing
    """
)
REST = _table(
    """
    sleep sleeps slept slept sleeping
    arrive arrives arrived arrived arriving
    laugh laughs laughed laughed laughing
    vanish vanishes vanished vanished vanishing
    sneeze sneezes sneezed sneezed sneezing
    yawn yawns yawned yawned yawning
    hesitate hesitates hesitated hesitated hesitating
    fall falls fell fallen falling
    rise rises rose risen rising
    """
)
THINK = _table(
    """
    say says said said saying
    think thinks thought thought thinking
    claim claims claimed claimed claiming
    hope hopes hoped hoped hoping
    believe believes believed believed believing
    """
)
GIVE = "gave sent lent handed showed offered sold".split()
EXPLAIN = "explained described donated displayed announced revealed mentioned".split()
WITH_INFINITIVE = "managed decided refused promised agreed planned wanted hoped".split()
WITH_GERUND = "enjoyed finished avoided practised denied kept considered resisted".split()
PERSON_ADJECTIVES = "tall old young quiet clever tired famous nervous polite lazy cheerful strange".split()
THING_ADJECTIVES = "small heavy cheap broken round wooden dusty pretty green strange".split()
ADVERBS = "quietly slowly carefully proudly gently secretly eagerly calmly".split()
BESIDE = ["near", "behind", "beside", "with", "opposite", "next to", "in front of"]
ADJUNCTS = [
    "in the evening", "after lunch", "at the station", "during the storm", "behind the school", "before dinner",
    "in the village", "after the concert", "near the harbour", "without any help", "in the old theatre",
]  # fmt: skip


def _noun_phrase(draw: _Draw, nouns: Sequence[tuple[str, ...]], number: int, adjective: float = 0.2) -> str:
    noun = draw.pick(nouns)[number]
    adjectives = THING_ADJECTIVES if nouns is THINGS else PERSON_ADJECTIVES
    words = f"{draw.pick(adjectives)} {noun}" if draw.chance(adjective) else noun
    if number == PLURAL:
        return f"{draw.pick(('the', 'the', 'these', 'those', 'some', 'two', 'my'))} {words}"
    determiner = draw.pick(("the", "the", "the", "a", "this", "that", "my"))
    return f"an {words}" if determiner == "a" and words[0] in "aeiou" else f"{determiner} {words}"


def _people(draw: _Draw, number: int | None = None) -> str:
    return _noun_phrase(draw, PEOPLE, draw.below(2) if number is None else number)


def _things(draw: _Draw, number: int | None = None) -> str:
    return _noun_phrase(draw, THINGS, draw.below(2) if number is None else number)


def _present(verb: Sequence[str], number: int) -> str:
    return verb[THIRD] if number == SINGULAR else verb[BASE]


def _predicate(draw: _Draw, form: int) -> str:
    """A verb phrase that fits any person as subject, with its verb in `form`."""
    kind = draw.below(3)
    if kind == 0:
        return draw.pick(REST)[form]
    return f"{draw.pick(HANDLE)[form]} {_things(draw)}" if kind == 1 else f"{draw.pick(TREAT)[form]} {_people(draw)}"


def _agreement(draw: _Draw) -> Pair:
    """The verb agrees with its subject, not with the noun that stands nearer."""
    number = draw.below(2)
    subject = _people(draw, number)
    attractor = _people(draw, draw.below(2))
    form = draw.below(6)
    if form == 0:
        subject = f"{subject} {draw.pick(BESIDE)} {attractor}"
    elif form == 1:
        subject = f"{subject} that {attractor} {draw.pick(TREAT)[PAST]}"
    elif form == 2:
        subject = f"{subject} who {draw.pick(HANDLE)[PAST]} {_things(draw)}"
    if draw.chance(0.4):
        rest = f"{draw.pick(ADVERBS)} {draw.pick(REST)[ING]}"
        return f"{subject} {('is', 'are')[number]} {rest}", f"{subject} {('are', 'is')[number]} {rest}"
    verb, rest = draw.pick(HANDLE), _things(draw)
    return f"{subject} {_present(verb, number)} {rest}", f"{subject} {_present(verb, 1 - number)} {rest}"


def _reflexive(draw: _Draw) -> Pair:
    """A reflexive agrees with the subject of its clause in number and gender."""
    masculine = draw.chance(0.5)
    number = draw.below(2)
    subject = _noun_phrase(draw, MEN if masculine else WOMEN, number)
    right = "themselves" if number == PLURAL else "himself" if masculine else "herself"
    wrong = draw.pick([word for word in ("himself", "herself", "themselves") if word != right])
    verb = draw.pick(TREAT)[PAST]
    if draw.chance(0.5):
        subject = f"{subject} {draw.pick(BESIDE)} {_noun_phrase(draw, MEN + WOMEN, draw.below(2))}"
    return f"{subject} {verb} {right}", f"{subject} {verb} {wrong}"


def _pronoun_case(draw: _Draw) -> Pair:
    (subject, oblique), (subject_2, oblique_2) = draw.two(
        [("he", "him"), ("she", "her"), ("they", "them"), ("we", "us")]
    )
    verb, someone = draw.pick(TREAT)[PAST], _people(draw)
    return draw.pick(
        [
            (f"{subject} {verb} {oblique_2}", f"{oblique} {verb} {subject_2}"),
            (f"{subject} and {someone} {verb} {oblique_2}", f"{oblique} and {someone} {verb} {subject_2}"),
            (f"{someone} {verb} {oblique} because {subject_2} yawned", f"{someone} {verb} {subject} because {oblique_2} yawned"),
        ]
    )  # fmt: skip


def _word_order(draw: _Draw) -> Pair:
    """Two neighbours change places; the words stay the same."""
    noun, other = draw.two(THINGS)
    adjective, adverb, verb = draw.pick(THING_ADJECTIVES), draw.pick(ADVERBS), draw.pick(HANDLE)
    someone, thing = _people(draw), _things(draw)
    return draw.pick(
        [
            (f"{someone} {verb[PAST]} the {adjective} {noun[0]}", f"{someone} {verb[PAST]} the {noun[0]} {adjective}"),
            (f"{someone} {adverb} {verb[PAST]} {thing}", f"{someone} {verb[PAST]} {adverb} {thing}"),
            (f"{someone} did not {verb[BASE]} {thing}", f"{someone} not did {verb[BASE]} {thing}"),
            (f"{someone} will {verb[BASE]} {thing}", f"{someone} {verb[BASE]} will {thing}"),
            (f"{someone} {verb[PAST]} {thing}", f"{someone} {thing} {verb[PAST]}"),
            (f"{someone} {verb[PAST]} {thing}", f"{verb[PAST]} {someone} {thing}"),
            (f"{someone} {verb[PAST]} the {noun[0]}", f"{someone} {verb[PAST]} {noun[0]} the"),
            (f"{someone} who laughed {verb[PAST]} {thing}", f"who {someone} laughed {thing} {verb[PAST]}"),
            (f"{someone} {verb[PAST]} the {noun[0]} from the {other[0]}", f"{someone} {verb[PAST]} the {noun[0]} the from {other[0]}"),
        ]
    )  # fmt: skip


def _argument_structure(draw: _Draw) -> Pair:
    """Objects are required by some verbs, refused by others, and come in an order that depends on the verb."""
    someone, other, thing = _people(draw), _people(draw), _things(draw)
    transitive, intransitive = draw.pick(HANDLE)[PAST], draw.pick(REST)[PAST]
    place = draw.pick(ADJUNCTS)
    form = draw.below(4)
    if form == 0:
        return f"{someone} {transitive} {thing} {place}", f"{someone} {intransitive} {thing} {place}"
    if form == 1:
        return f"{someone} {intransitive} {place}", f"{someone} {transitive} {place}"
    if form == 2:
        return f"{someone} {draw.pick(GIVE)} {other} {thing}", f"{someone} {draw.pick(EXPLAIN)} {other} {thing}"
    verb = draw.pick(EXPLAIN + GIVE)
    return f"{someone} {verb} {thing} to {other}", f"{someone} {verb} to {other} {thing}"


def _determiner(draw: _Draw) -> Pair:
    someone, thing, place = _people(draw), draw.pick(THINGS), draw.pick(ADJUNCTS)
    verb, adjective = draw.pick(HANDLE)[PAST], draw.pick(THING_ADJECTIVES)
    number = draw.below(2)
    determiner = draw.pick([("this", "these"), ("every", "all"), ("a single", "few"), ("each", "several")])[number]
    noun = f"{adjective} {thing[number]}"
    return draw.pick(
        [
            (f"{someone} {verb} the {adjective} {thing[0]}", f"{someone} {verb} {adjective} {thing[0]}"),
            (f"{someone} {verb} the {noun} {place}", f"{someone} {verb} the {draw.pick(('my', 'some', 'that'))} {noun} {place}"),
            (f"{someone} {verb} {determiner} {thing[number]}", f"{someone} {verb} {determiner} {thing[1 - number]}"),
        ]
    )  # fmt: skip


def _auxiliary(draw: _Draw) -> Pair:
    """Auxiliaries select the form of the verb after them; adverbs of time select the tense."""
    someone, thing, verb = _noun_phrase(draw, PEOPLE, PLURAL), _things(draw), draw.pick(HANDLE)
    past, future = draw.pick(("yesterday", "last week")), draw.pick(("tomorrow", "next week"))
    auxiliary, right, wrong = draw.pick(
        [
            ("have", PARTICIPLE, BASE), ("will", BASE, PAST), ("did not", BASE, PAST), ("are", ING, BASE),
            ("have", PARTICIPLE, ING), ("might", BASE, ING), ("had never", PARTICIPLE, BASE), ("should", BASE, THIRD),
        ]
    )  # fmt: skip
    return draw.pick(
        [
            (f"{someone} {auxiliary} {verb[right]} {thing}", f"{someone} {auxiliary} {verb[wrong]} {thing}"),
            (f"{someone} {verb[PAST]} {thing} {past}", f"{someone} {verb[PAST]} {thing} {future}"),
            (f"{someone} will {verb[BASE]} {thing} {future}", f"{someone} will {verb[BASE]} {thing} {past}"),
            (f"{thing} had been {verb[PARTICIPLE]} by {someone}", f"{thing} had been {verb[ING]} by {someone}"),
        ]
    )


def _question(draw: _Draw) -> Pair:
    """Inversion, filled gaps and islands."""
    someone, other, thing = _people(draw), _people(draw), _things(draw)
    verb, treat, think = draw.pick(HANDLE), draw.pick(TREAT), draw.pick(THINK)[BASE]
    noun = draw.pick(THINGS)[draw.below(2)]
    joint = draw.pick(("because", "after", "while"))
    return draw.pick(
        [
            (f"which {noun} did {someone} {verb[BASE]}?", f"which {noun} {someone} did {verb[BASE]}?"),
            (f"what did {someone} {verb[BASE]}?", f"what did {someone} {verb[BASE]} {thing}?"),
            (f"what did {someone} {think} that {other} {verb[PAST]}?", f"what did {someone} laugh {joint} {other} {verb[PAST]}?"),
            (f"did {someone} laugh {joint} {other} {verb[PAST]} {thing}?", f"what did {someone} laugh {joint} {other} {verb[PAST]}?"),
            (f"who did {someone} {think} {treat[PAST]} {other}?", f"who did {someone} {think} that {treat[PAST]} {other}?"),
            (f"who {treat[PAST]} {someone} who {verb[PAST]} {thing}?", f"what did {someone} {treat[BASE]} {other} who {verb[PAST]}?"),
            (f"{someone} knew which {noun} {other} {verb[PAST]}", f"{someone} knew which {noun} did {other} {verb[BASE]}"),
            (f"{someone} knew what {other} {verb[PAST]}", f"{someone} knew what {other} {verb[PAST]} {thing}"),
        ]
    )  # fmt: skip


def _complement(draw: _Draw) -> Pair:
    """Some verbs take an infinitive, others a gerund; the two are mixed up."""
    someone, verb, thing = _people(draw), draw.pick(HANDLE), _things(draw)
    infinitive, gerund = f"to {verb[BASE]} {thing}", f"{verb[ING]} {thing}"
    return draw.pick(
        [
            (f"{someone} {draw.pick(WITH_INFINITIVE)} {infinitive}", f"{someone} {draw.pick(WITH_GERUND)} {infinitive}"),
            (f"{someone} {draw.pick(WITH_GERUND)} {gerund}", f"{someone} {draw.pick(WITH_INFINITIVE)} {gerund}"),
        ]
    )  # fmt: skip


def _licensing(draw: _Draw) -> Pair:
    """`ever`, `any` and `either ... or` need something earlier in the sentence."""
    (person, persons), verb, thing = draw.pick(PEOPLE), draw.pick(HANDLE), _things(draw)
    someone, other, noun = _people(draw), _people(draw), draw.pick(THINGS)[PLURAL]
    treat = draw.pick(TREAT)[PAST]
    positive = draw.pick(("some", "many", "most"))
    return draw.pick(
        [
            (f"no {person} has ever {verb[PARTICIPLE]} {thing}", f"every {person} has ever {verb[PARTICIPLE]} {thing}"),
            (f"few {persons} have {verb[PARTICIPLE]} any {noun}", f"{positive} {persons} have {verb[PARTICIPLE]} any {noun}"),
            (f"{positive} {persons} have {verb[PARTICIPLE]} {noun}", f"{positive} {persons} have ever {verb[PARTICIPLE]} {noun}"),
            (f"{someone} {treat} neither {other} nor {_people(draw)}", f"{someone} {treat} neither {other} or {_people(draw)}"),
            (f"{someone} {treat} either {other} or {_people(draw)}", f"{someone} {treat} either {other} nor {_people(draw)}"),
        ]
    )  # fmt: skip


CONSTRUCTIONS: tuple[tuple[Callable[[_Draw], Pair], int], ...] = (
    (_agreement, 2), (_reflexive, 1), (_pronoun_case, 2), (_word_order, 5), (_argument_structure, 3),
    (_determiner, 2), (_auxiliary, 2), (_question, 4), (_complement, 2), (_licensing, 1),
)  # fmt: skip


def _finish(draw: _Draw, clause: str) -> str:
    """Sometimes embed the clause, move an adjunct before it or put one after it; then capital letter and full stop."""
    if clause.endswith("?"):
        return clause[0].upper() + clause[1:]
    kind = draw.below(10)
    if kind == 0:
        clause = f"{draw.pick(ADJUNCTS)}, {clause}"
    elif kind == 1:
        clause = f"{_people(draw)} {draw.pick(THINK)[PAST]} that {clause}"
    elif kind == 2:
        clause = f"{clause} {draw.pick(('and', 'but', 'so'))} {_people(draw)} {_predicate(draw, PAST)}"
    elif kind == 3:
        clause = f"{_people(draw)} {_predicate(draw, PAST)}, {draw.pick(('and', 'but', 'so'))} {clause}"
    return clause[0].upper() + clause[1:] + "."


def _acceptability_example(draw: _Draw) -> tuple[str, int]:
    weighted = [construction for construction, weight in CONSTRUCTIONS for _ in range(weight)]
    good, bad = draw.pick(weighted)(draw)
    acceptable = draw.chance(ACCEPTABLE_SHARE)
    sentence = _finish(draw, good if acceptable else bad)
    return sentence, int(acceptable != draw.chance(LABEL_NOISE))


def acceptability() -> dict[str, list[tuple[str, int]]]:
    """Sentences with an index into `ACCEPTABILITY_LABELS`, by split; the same on every call and platform."""
    draw, seen = _Draw(ACCEPTABILITY_SEED), set()
    splits: dict[str, list[tuple[str, int]]] = {}
    for split, size in SPLIT_SIZES.items():
        examples = splits[split] = []
        while len(examples) < size:
            sentence, label = _acceptability_example(draw)
            if sentence.lower() not in seen:
                seen.add(sentence.lower())
                examples.append((sentence, label))
    return splits


ACCEPTABILITY_SEED = 20240611


# ---------------------------------------------------------------------------------------------------------------
# Entities: templates with slots. One stock of composed names serves as surnames, towns, teams and firms alike.

NAME_STARTS = (
    "Al Bar Bel Bren Cal Cor Dal Dar El Fal Fen Gar Gil Hal Har Hol Is Jor Kal Kes Lan Lor Mal Mar Mel Mor Nor Ol "
    "Or Pel Per Quin Ral Ros Sal Sel Sor Tal Tor Ul Val Ver Wal Wen Yor Zan"
).split()
NAME_MIDDLES = "a an ar ber da den do el en er es i in ka la le li ma mer ni on or ra ri sa ta ten ver vi wo".split()
NAME_ENDS = "by dale den ford gate ham holm ley low man mond more nell rick sen son stead ston ton well wick worth".split()
FIRST_NAME_ENDS = "a ah an as e el ena i ia in io is o on us y".split()
WORD_NAMES = "Archer Banks Barber Bishop Brook Carpenter Cross Field Fisher Glass Hill March Marsh Pike Potter Rivers Stone Summer".split()  # fmt: skip
COMMON_WORDS = {
    "<role>": "striker captain coach lawyer minister director analyst trader singer mayor banker spokeswoman",
    "<thing>": "bank river united market summit field city hill company mayor cup open group stone bridge",
    "<day>": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "<game>": "football cricket rugby hockey basketball",
    "<number>": "two three five seven 12 18 25 40 150",
    "<goals>": "1-0 2-0 2-1 3-1 3-2 4-0",
    "<sets>": "6-4_6-2 7-5_6-3 6-1_6-4 6-3_7-6 6-0_6-2",
    "<lead>": "On_<day>_, Meanwhile_, Earlier_, In_brief_: However_, Still_,",
    "<tail>": "on_<day> last_week after_talks_in_{town} ,_{press}_reported ,_officials_said as_expected",
}


def _name(draw: _Draw) -> list[str]:
    if draw.chance(0.15):
        return [draw.pick(WORD_NAMES)]
    middle = draw.pick(NAME_MIDDLES) if draw.chance(0.6) else ""
    return [draw.pick(NAME_STARTS) + middle + draw.pick(NAME_ENDS)]


def _first_name(draw: _Draw) -> list[str]:
    if draw.chance(0.15):
        return [draw.pick("ABCDEGHJKLMNPRST") + "."]
    return [draw.pick(NAME_STARTS) + draw.pick(NAME_MIDDLES) * draw.below(2) + draw.pick(FIRST_NAME_ENDS)]


def _person(draw: _Draw) -> list[str]:
    particle = [draw.pick(("van", "de", "al", "von"))] if draw.chance(0.08) else []
    return _first_name(draw) + particle + _name(draw)


def _town(draw: _Draw) -> list[str]:
    before = [draw.pick(("New", "Port", "Saint", "East", "Upper", "Mount"))] if draw.chance(0.15) else []
    after = [draw.pick(("Bay", "Valley", "Island", "Hills"))] if draw.chance(0.08) else []
    return before + _name(draw) + after


def _firm(draw: _Draw) -> list[str]:
    """A firm is called like its founder, alone or with what it does."""
    kind = draw.below(5)
    if kind == 0:
        return [*_name(draw), "&", *_name(draw)]
    after = draw.pick(("Motors", "Bank", "Group", "Airlines", "& Sons", "Steel", "Holdings", "Foods")).split()
    return _name(draw) + (after if kind == 1 else [])


def _agency(draw: _Draw) -> list[str]:
    """An organisation with a place or a person inside its name: one span, not two."""
    before = draw.pick(("University of", "Bank of", "Port Authority of", "Friends of", "Museum of")).split()
    after = draw.pick(("City Council", "University", "Institute", "Police", "Foundation", "Chamber of Trade")).split()
    return before + _town(draw) if draw.chance(0.5) else _town(draw) + after


def _team(draw: _Draw) -> list[str]:
    after = [draw.pick(("United", "Rovers", "City", "Athletic", "Wanderers"))] if draw.chance(0.2) else []
    return _name(draw) + after


def _press(draw: _Draw) -> list[str]:
    return _name(draw) + [draw.pick(("Times", "Gazette", "Radio", "News"))] if draw.chance(0.7) else _name(draw)


def _people_of(draw: _Draw) -> list[str]:
    """The adjective or noun of a country: Calardian, Brenfordese."""
    return [draw.pick(NAME_STARTS) + draw.pick(NAME_MIDDLES) + draw.pick(("dian", "nese", "vian", "tish", "rian"))]


def _event(draw: _Draw) -> list[str]:
    after = draw.pick(("Open", "Cup", "Prize", "Festival", "Treaty", "Marathon", "Trophy")).split()
    return _name(draw) + (after if draw.chance(0.6) else [])


def _product(draw: _Draw) -> list[str]:
    return _name(draw) + ([draw.pick(("400", "X2", "Mini", "7", "Turbo"))] if draw.chance(0.5) else [])


SLOTS: dict[str, tuple[str, Callable[[_Draw], list[str]]]] = {
    "{person}": ("PER", _person), "{name}": ("PER", _name), "{town}": ("LOC", _town), "{team}": ("ORG", _team),
    "{firm}": ("ORG", _firm), "{agency}": ("ORG", _agency), "{press}": ("ORG", _press),
    "{people}": ("MISC", _people_of), "{event}": ("MISC", _event), "{product}": ("MISC", _product),
}  # fmt: skip

# Spaces separate tokens, `|` separates alternatives for one place, `_` joins the words of an alternative.
TEMPLATES = """
{team} beat|defeated|crushed {team} <goals> at_home|away|in_the_rain|in_{town}
{name} beat|defeated|crushed {name} <sets> in_the_final|indoors|on_clay|in_{town}
{people} <role> {person} beat|defeated {name} <sets>
{team} <number> {team} <number>
{name} ( {town} ) beat {person} ( {people} ) <sets>
{team} signed|sold|dropped the <role> {person} from|to {team}
{team} , without {name} , lost <goals> to {team}
{name} , without a <role> , lost <sets> to {name}
the <game> match between {team} and {team} in {town} was abandoned|postponed
the road|border|railway between {town} and {town} was closed|flooded
the merger|lawsuit|deal between {firm} and {firm} was delayed|approved
the marriage|feud|friendship between {name} and {name} was short|famous
{name} scored|missed twice|again for {team}
{name} won|left|entered the {event} at|near {town}
{name} told|reminded reporters|the_court that {firm} would sue|settle
{firm} told|reminded shareholders|its_staff that {name} would leave|stay
{town} voted|flooded|burned after {name} and {name} resigned|returned
{firm} shares rose|fell|climbed <number> percent in {town}
shares in {firm} rose|fell <number> percent
storms in {town} killed|injured <number> people
police|doctors|officials in {town} arrested|questioned {person}
police|teachers|lawyers at {agency} questioned {name} about {firm}
{agency} praised|ignored|sued the {people} <role> {name}
{firm} hired|fired {person} as <role>
{firm} will build|sell the {product} in {town}
{name} drove|crashed his|her {product} near {town}
{name} drove|walked|flew from {town} to {town}
{name} moved|went from {team} to {team} for <number> million
{firm} moved|shifted <number> jobs from {town} to {town}
the {product} , made|sold by {firm} , costs <number> dollars
the {event} , held in {town} , drew|attracted <number> {people} <role>s
the {people} <role> {name} met|phoned {people} <role> {person}
the <thing> of|near|outside {town} was quiet|empty
the <thing> owned|bought|founded by {name} was quiet|empty
the <thing> owned|bought|run by {firm} reported a loss|profit
the old <thing> by the <thing> was quiet|empty|crowded
no <role> was hurt|named when the <thing> closed|opened
<role>s and <role>s left the <thing> early|late
{name} , <number> , was born|raised|buried in {town}
{firm} , founded in {town} by {name} , makes|sells the {product}
{press} said|reported that {firm} had left|entered {town}
{person} wrote|worked for {press}
{name} 's mother|lawyer|coach blamed|thanked {team}
{town} 's harbour|mayor|airport blamed|thanked {firm}
{firm} 's profit|debt|chairman surprised|pleased {town}
voters|farmers|tourists left|loved|avoided {town}
critics|readers|judges left|loved|praised {name} 's novel
investors|lenders|clients left|loved|avoided {firm}
fans|supporters left|loved|followed {team}
{name} speaks|teaches|learned {people} in {town}
{people} exports|farmers|voters helped|hurt {firm}
for {name} , the {event} was a family|personal matter
for {town} , the {event} was a tourist|traffic matter
for {firm} , the {event} was a marketing|legal matter
{name} and {name} married|argued in {town}
{town} and {town} share|lack a river|harbour
{firm} and {firm} share|lack a chairman|patent
"""


def _expand(draw: _Draw, template: str) -> tuple[list[str], list[str]]:
    """Fill a template: choose alternatives, common words and names."""
    words: list[str] = []
    tags: list[str] = []
    for place in template.split():
        choice = draw.pick(place.split("|"))
        stem = choice.removesuffix("s") if choice.endswith(">s") else choice
        if stem in COMMON_WORDS:
            choice = draw.pick(COMMON_WORDS[stem].split()) + choice[len(stem) :]
        if "_" in choice:
            inner_words, inner_tags = _expand(draw, choice.replace("_", " "))
        elif choice in SLOTS:
            entity, name = SLOTS[choice]
            inner_words = name(draw)
            inner_tags = [f"B-{entity}"] + [f"I-{entity}"] * (len(inner_words) - 1)
        else:
            inner_words, inner_tags = [choice], ["O"]
        words += inner_words
        tags += inner_tags
    return words, tags


def _entity_example(draw: _Draw) -> tuple[list[str], list[int]]:
    templates = TEMPLATES.strip().split("\n")
    lead = "<lead> " if draw.chance(0.15) else ""
    middle = f" {draw.pick((', while', ', and', ';', ', but'))} {draw.pick(templates)}" if draw.chance(0.15) else ""
    tail = " <tail>" if draw.chance(0.2) else ""
    words, tags = _expand(draw, f"{lead}{draw.pick(templates)}{middle}{tail}")
    if draw.chance(0.07):
        words = [word.upper() for word in words]
    else:
        words = [words[0][0].upper() + words[0][1:], *words[1:]]
        if words[-1] != ".":
            words, tags = [*words, "."], [*tags, "O"]
    return words, [ENTITY_LABELS.index(tag) for tag in tags]


ENTITY_SEED = 20241105


def entities() -> dict[str, list[tuple[list[str], list[int]]]]:
    """Tokens with indices into `ENTITY_LABELS` (IOB2), by split; the same on every call and platform."""
    draw, seen = _Draw(ENTITY_SEED), set()
    splits: dict[str, list[tuple[list[str], list[int]]]] = {}
    for split, size in SPLIT_SIZES.items():
        examples = splits[split] = []
        while len(examples) < size:
            words, labels = _entity_example(draw)
            key = " ".join(words).lower()
            if key not in seen:
                seen.add(key)
                examples.append((words, labels))
    return splits
