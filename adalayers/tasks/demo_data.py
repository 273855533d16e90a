"""The embedded corpora `acceptability-demo` and `entities-demo`, generated here from fixed seeds.

Both serve demonstration only: they let every study run without a download, and say nothing about natural
text. No sentence is taken from anywhere. Neither depends on platform, Python version (3.11+) or hash seed.

`acceptability()`: English sentences in the manner of linguists' examples. Each is one side of a minimal
pair that a small grammar makes, so that the words alone hardly tell the sides apart: agreement with
attractors, reflexives, pronoun case, word order, argument structure, determiners, auxiliaries and tense,
wh-questions and islands, complements, licensing. About 60 of 100 are acceptable; 5 of 100 labels are
flipped, so nothing scores 1.

`entities()`: sport, business and local news with IOB2 tags. Names are composed from parts, so most of those
in test never occur in train, and one stock of names serves as surnames, towns, teams and firms: only the
context tells "Harford beat Selby 3-1" (teams) from "Harford beat Selby 6-4 6-2" (people). Some names are
common words, some sentences are headlines in capitals, and some organisations have a place inside their
name.

How hard: linear probes (logistic regression) on the states of all-MiniLM-L6-v2, embeddings first, then layers
1 to 6; scores on test, one fit each, regularisation of the first row chosen on validation:

    acceptability, Matthews, mean-pooled states    0.14  0.22  0.34  0.41  0.34  0.22  0.16
    entities, entity F1, first sub-token           0.22  0.54  0.56  0.68  0.68  0.63  0.51

Without a backbone (TF-IDF, logistic regression) words alone reach a Matthews of 0.11 on test (0.19 on
validation), words and word pairs 0.29 (0.43), sentence length 0. With 400 test examples the Matthews figures
are good to about 0.05.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

SPLIT_SIZES = {"train": 2000, "validation": 400, "test": 400}
ACCEPTABILITY_LABELS = ("unacceptable", "acceptable")
ENTITY_LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")

ACCEPTABILITY_SEED = 20240611
ACCEPTABLE_SHARE = 0.6
LABEL_NOISE = 0.05
ENTITY_SEED = 20241105


def acceptability() -> dict[str, list[tuple[str, int]]]:
    """Sentences with an index into `ACCEPTABILITY_LABELS`, by split; always the same."""
    return fill_splits(Draw(ACCEPTABILITY_SEED), _acceptability_example, lambda example: example[0].lower())


def entities() -> dict[str, list[tuple[list[str], list[int]]]]:
    """Tokens with indices into `ENTITY_LABELS` (IOB2), by split; always the same."""
    return fill_splits(Draw(ENTITY_SEED), _entity_example, lambda example: " ".join(example[0]).lower())


class Draw:
    """Seeded choices from `Random.random` alone, the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def below(self, stop: int) -> int:
        return int(self._random() * stop)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]


def fill_splits(draw: Draw, example: Callable[[Draw], T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Fill the splits in order; an example whose text occurred before, in any split, is drawn again."""
    seen: set[str] = set()
    splits: dict[str, list[T]] = {split: [] for split in SPLIT_SIZES}
    for split, size in SPLIT_SIZES.items():
        while len(splits[split]) < size:
            drawn = example(draw)
            if key(drawn) not in seen:
                seen.add(key(drawn))
                splits[split].append(drawn)
    return splits


# ------------------------------------------------------------------------------------------------------------
# Acceptability: minimal pairs, of which one side is kept.


def _words(text: str) -> list[str]:
    return text.split()


def _nouns(text: str) -> list[list[str]]:
    return [[noun, noun + "s"] for noun in text.split()]


def _verbs(text: str) -> list[list[str]]:
    """Base, third person, past, participle, -ing."""
    return [forms.split() for forms in text.split(",")]


PEOPLE = _nouns(
    "baker nurse gardener clerk sailor painter singer farmer poet driver lawyer student waiter guard "
    "editor plumber cousin neighbour dentist pilot"
)
MEN = _nouns("uncle brother king monk prince boy grandfather nephew wizard")
WOMEN = _nouns("aunt sister queen nun girl grandmother niece bride daughter")
THINGS = _nouns(
    "basket ladder letter lantern blanket drum map bicycle cake vase curtain photograph hammer violin "
    "carpet bottle mirror pillow helmet candle"
)
HANDLE = _verbs(
    "carry carries carried carried carrying, repair repairs repaired repaired repairing, bring brings "
    "brought brought bringing, find finds found found finding, take takes took taken taking, borrow "
    "borrows borrowed borrowed borrowing, inspect inspects inspected inspected inspecting, fetch fetches "
    "fetched fetched fetching, throw throws threw thrown throwing, hold holds held held holding, buy buys "
    "bought bought buying"
)
TREAT = _verbs(
    "greet greets greeted greeted greeting, praise praises praised praised praising, thank thanks thanked "
    "thanked thanking, blame blames blamed blamed blaming, warn warns warned warned warning, trust trusts "
    "trusted trusted trusting, admire admires admired admired admiring, see sees saw seen seeing, know "
    "knows knew known knowing"
)
REST = _verbs(
    "sleep sleeps slept slept sleeping, arrive arrives arrived arrived arriving, laugh laughs laughed "
    "laughed laughing, vanish vanishes vanished vanished vanishing, sneeze sneezes sneezed sneezed "
    "sneezing, yawn yawns yawned yawned yawning, hesitate hesitates hesitated hesitated hesitating, fall "
    "falls fell fallen falling, rise rises rose risen rising"
)
THINK = _verbs(
    "say says said said saying, think thinks thought thought thinking, claim claims claimed claimed "
    "claiming, hope hopes hoped hoped hoping, believe believes believed believed believing"
)
PERSON_ADJECTIVES = _words("tall old young quiet clever tired famous nervous polite lazy cheerful strange")
THING_ADJECTIVES = _words("small heavy cheap broken round wooden dusty pretty green strange")
SINGULAR_DETERMINERS = _words("the the the a this that my")
PLURAL_DETERMINERS = _words("the the these those some two my")
ADJUNCTS = [
    *("in the evening", "after lunch", "at the station", "during the storm", "behind the school"),
    *("before dinner", "in the village", "after the concert", "near the harbour", "in the old theatre"),
]
SLOT_WORDS = {
    "gave": _words("gave sent lent handed showed offered sold"),
    "explained": _words("explained described donated displayed announced revealed mentioned"),
    "managed": _words("managed decided refused promised agreed planned wanted hoped"),
    "enjoyed": _words("enjoyed finished avoided practised denied kept considered resisted"),
    "gently": _words("quietly slowly carefully proudly gently secretly eagerly calmly"),
    "near": _words("near behind beside with opposite"),
    "because": _words("because after while"),
    "most": _words("some many most"),
    "my": _words("my some that"),
    "green": THING_ADJECTIVES,
    "adjunct": ADJUNCTS,
}

# Kind of violation: how often it is drawn, then its pairs, "acceptable ~ unacceptable". A slot is named after
# one of the words that can fill it; `_fillings` chooses them.
PAIRS = {
    "agreement": (2, """
        {subject} {agrees} {object} ~ {subject} {clashes} {object}
        {subject} {is_are} {gently} {sleeping} ~ {subject} {are_is} {gently} {sleeping}
        {subject} {near} {other} {agrees} {object} ~ {subject} {near} {other} {clashes} {object}
        {subject} that {other} {greeted} {is_are} old ~ {subject} that {other} {greeted} {are_is} old
        {subject} who {took} {object} {is_are} {sleeping} ~ {subject} who {took} {object} {are_is} {sleeping}
        """),
    "reflexive": (1, """
        {uncle} {greeted} {himself} ~ {uncle} {greeted} {not_himself}
        {uncle} {near} {other} {greeted} {himself} ~ {uncle} {near} {other} {greeted} {not_himself}
        """),
    "pronoun case": (2, """
        {he} {greeted} {them} ~ {him} {greeted} {they}
        {he} and {someone} {greeted} {them} ~ {him} and {someone} {greeted} {they}
        {someone} {greeted} {him} {because} {they} {slept} ~ {someone} {greeted} {he} {because} {them} {slept}
        """),
    "word order": (5, """
        {someone} {took} the {green} {vase} ~ {someone} {took} {green} the {vase}
        {someone} {gently} {took} {object} ~ {someone} {took} {gently} {object}
        {someone} did not {take} {object} ~ {someone} not did {take} {object}
        {someone} will {take} {object} ~ {someone} {take} will {object}
        {someone} {took} {object} ~ {someone} {object} {took}
        {someone} {took} {object} ~ {took} {someone} {object}
        {someone} {took} the {vase} ~ {someone} {took} {vase} the
        {someone} who {slept} {took} {object} ~ who {someone} {slept} {object} {took}
        {someone} {took} {object} from the {vase} ~ {someone} {took} {object} the from {vase}
        """),
    "argument structure": (3, """
        {someone} {took} {object} {adjunct} ~ {someone} {slept} {object} {adjunct}
        {someone} {slept} {adjunct} ~ {someone} {took} {adjunct}
        {someone} {gave} {other} {object} ~ {someone} {explained} {other} {object}
        {someone} {explained} {object} to {other} ~ {someone} {explained} to {other} {object}
        {someone} {gave} {object} to {other} ~ {someone} {gave} to {other} {object}
        """),
    "determiner": (2, """
        {someone} {took} the {green} {vase} ~ {someone} {took} {green} {vase}
        {someone} {took} the {vases} {adjunct} ~ {someone} {took} the {my} {vases} {adjunct}
        {someone} {took} every {vase} ~ {someone} {took} every {vases}
        {someone} {took} these {vases} ~ {someone} {took} these {vase}
        {someone} {took} several {vases} ~ {someone} {took} several {vase}
        {someone} {took} a single {vase} ~ {someone} {took} a single {vases}
        """),
    "auxiliary and tense": (2, """
        {group} have {taken} {object} ~ {group} have {taking} {object}
        {group} are {taking} {object} ~ {group} are {take} {object}
        {group} will {take} {object} ~ {group} will {took} {object}
        {group} did not {take} {object} ~ {group} did not {took} {object}
        {group} might {take} {object} ~ {group} might {taking} {object}
        {object} had been {taken} by {group} ~ {object} had been {taking} by {group}
        {someone} {took} {object} yesterday ~ {someone} {took} {object} tomorrow
        {someone} will {take} {object} tomorrow ~ {someone} will {take} {object} yesterday
        """),
    "question": (4, """
        which {vases} did {someone} {take}? ~ which {vases} {someone} did {take}?
        what did {someone} {take}? ~ what did {someone} {take} {object}?
        what did {someone} {think} that {other} {took}? ~ what did {someone} {sleep} {because} {other} {took}?
        who did {someone} {think} {greeted} {other}? ~ who did {someone} {think} that {greeted} {other}?
        what surprised {someone} who {took} {object}? ~ what did {someone} {greet} {other} who {took}?
        {someone} knew which {vase} {other} {took} ~ {someone} knew which {vase} did {other} {take}
        {someone} knew what {other} {took} ~ {someone} knew what {other} {took} {object}
        """),
    "complement": (2, """
        {someone} {managed} to {take} {object} ~ {someone} {enjoyed} to {take} {object}
        {someone} {enjoyed} {taking} {object} ~ {someone} {managed} {taking} {object}
        """),
    "licensing": (1, """
        no {clerk} has ever {taken} {object} ~ every {clerk} has ever {taken} {object}
        few {clerks} {took} any {vases} ~ {most} {clerks} {took} any {vases}
        {most} {clerks} have {taken} {object} ~ {most} {clerks} have ever {taken} {object}
        {someone} {greeted} neither {other} nor {group} ~ {someone} {greeted} neither {other} or {group}
        {someone} {greeted} either {other} or {group} ~ {someone} {greeted} either {other} nor {group}
        """),
}  # fmt: skip
KINDS = [kind for kind, (weight, _) in PAIRS.items() for _ in range(weight)]


def _phrase(draw: Draw, nouns: Sequence[Sequence[str]], plural: bool) -> str:
    """A noun with a determiner and sometimes an adjective."""
    noun = draw.pick(nouns)[plural]
    if draw.chance(0.2):
        noun = f"{draw.pick(THING_ADJECTIVES if nouns is THINGS else PERSON_ADJECTIVES)} {noun}"
    determiner = draw.pick(PLURAL_DETERMINERS if plural else SINGULAR_DETERMINERS)
    return f"an {noun}" if determiner == "a" and noun[0] in "aeiou" else f"{determiner} {noun}"


def _fillings(draw: Draw) -> dict[str, str]:
    """What the slots of `PAIRS` stand for in one sentence."""
    slots = {slot: draw.pick(words) for slot, words in SLOT_WORDS.items()}
    for names, forms in (
        ("vase vases", THINGS),
        ("clerk clerks", PEOPLE),
        ("take takes took taken taking", HANDLE),
        ("greet _ greeted _ _", TREAT),
        ("sleep _ slept _ sleeping", REST),
        ("think _ thought _ _", THINK),
    ):
        slots |= zip(names.split(), draw.pick(forms), strict=True)

    plural = draw.chance(0.5)
    slots["subject"] = _phrase(draw, PEOPLE, plural)
    slots["agrees"], slots["clashes"] = _swap((slots["takes"], slots["take"]), plural)
    slots["is_are"], slots["are_is"] = _swap(("is", "are"), plural)
    slots["someone"], slots["other"] = (_phrase(draw, PEOPLE, draw.chance(0.5)) for _ in range(2))
    slots["group"], slots["object"] = _phrase(draw, PEOPLE, True), _phrase(draw, THINGS, draw.chance(0.5))

    plural, masculine = draw.chance(0.5), draw.chance(0.5)
    reflexives = ["himself", "herself", "themselves"]
    slots["uncle"] = _phrase(draw, MEN if masculine else WOMEN, plural)
    slots["himself"] = reflexives.pop(2 if plural else 0 if masculine else 1)
    slots["not_himself"] = draw.pick(reflexives)

    pronouns = [("he", "him"), ("she", "her"), ("they", "them"), ("we", "us")]
    slots["he"], slots["him"] = pronouns.pop(draw.below(4))
    slots["they"], slots["them"] = draw.pick(pronouns)
    return slots


def _swap(pair: tuple[str, str], swapped: bool) -> tuple[str, str]:
    return (pair[1], pair[0]) if swapped else pair


FRAMES = (
    "{adjunct}, CLAUSE", "{other} {thought} that CLAUSE", "CLAUSE and {someone} {slept}",
    "CLAUSE but {someone} {took} {object}", "CLAUSE and {someone} {greeted} {other}",
)  # fmt: skip
FRAME_SHARE = 0.35


def _acceptability_example(draw: Draw) -> tuple[str, int]:
    """One side of a pair; a statement is sometimes embedded, or joined with an adjunct or a second clause."""
    pair = draw.pick(PAIRS[draw.pick(KINDS)][1].strip().split("\n"))
    acceptable = draw.chance(ACCEPTABLE_SHARE)
    sentence = pair.split(" ~ ")[0 if acceptable else 1].strip().format(**_fillings(draw))
    if not sentence.endswith("?"):
        if draw.chance(FRAME_SHARE):
            sentence = draw.pick(FRAMES).format(**_fillings(draw)).replace("CLAUSE", sentence)
        sentence += "."
    return sentence[0].upper() + sentence[1:], int(acceptable != draw.chance(LABEL_NOISE))


# ------------------------------------------------------------------------------------------------------------
# Entities: templates with slots. One stock of composed names for surnames, towns, teams and firms.

NAME_STARTS = _words(
    "Al Bar Bel Bren Cal Cor Dal Dar El Fal Fen Gar Gil Hal Har Hol Is Jor Kal Kes Lan Lor Mal Mar Mel "
    "Mor Nor Ol Or Pel Per Quin Ral Ros Sal Sel Sor Tal Tor Ul Val Ver Wal Wen Yor Zan"
)
NAME_MIDDLES = _words(
    "a an ar ber da den do el en er es i in ka la le li ma mer ni on or ra ri sa ta ten ver vi wo"
)
NAME_ENDS = _words(
    "by dale den ford gate ham holm ley low man mond more nell rick sen son stead ston ton well wick worth"
)
FIRST_NAME_ENDS = _words("a ah an as e el ena i ia in io is o on us y")
COUNTRY_ENDS = _words("dian nese vian tish rian")
WORD_NAMES = _words(
    "Archer Banks Barber Bishop Brook Carpenter Cross Field Fisher Glass Hill March Marsh Pike Potter "
    "Rivers Stone Summer"
)
COMMON_WORDS = {
    "<role>": "lawyer minister director analyst trader singer mayor banker manager coach",
    "<player>": "striker captain keeper winger coach defender",
    "<thing>": "bank river market field hill company bridge stone_mill city_hall steel_plant cup_final",
    "<day>": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "<game>": "football cricket rugby hockey basketball",
    "<number>": "two three five seven 12 18 25 40",
    "<goal>": "0 1 2 3 4 5",
    "<goals>": "1-0 2-0 2-1 3-1 3-2 4-0",
    "<sets>": "6-4_6-2 7-5_6-3 6-1_6-4 6-3_7-6 6-0_6-2",
    "<lead>": "On_<day>_, Meanwhile_, Earlier_, In_brief_: However_, Still_,",
    "<tail>": "on_<day> last_week after_talks_in_{town} ,_{press}_reported ,_officials_said as_expected",
}


# Slot: the entity's type and its patterns, likelier ones repeated. N is a name, F a first name or an initial,
# C an adjective of country; `_` joins tokens. Some organisations have a place inside: one span, not two.
ENTITY_SLOTS = {
    "{name}": ("PER", "N"),
    "{person}": ("PER", "F_N F_N F_N F_N F_N F_N F_N F_N F_N F_N F_van_N F_de_N"),
    "{town}": ("LOC", "N N N N N N N N N N N N New_N Port_N Saint_N Mount_N N_Bay N_Valley"),
    "{team}": ("ORG", "N N N N N N N N N N N N N N N N N_United N_Rovers N_City N_Wanderers"),
    "{firm}": ("ORG", "N N N N N N N N N N N N N_&_N N_&_N N_&_N N_Motors N_Bank N_Group N_Steel N_&_Sons"),
    "{agency}": ("ORG", "University_of_N Port_Authority_of_N Friends_of_N Museum_of_New_N Bank_of_Port_N "
                 "N_City_Council N_University N_Institute Mount_N_Police N_Chamber_of_Trade"),
    "{press}": ("ORG", "N N N_Times N_Gazette N_Radio N_News"),
    "{people}": ("MISC", "C"),
    "{event}": ("MISC", "N N N N_Open N_Cup N_Prize N_Treaty N_Marathon"),
    "{product}": ("MISC", "N N N N N_400 N_X2 N_Mini N_Turbo"),
}  # fmt: skip

# Spaces separate tokens, `|` separates alternatives for one place, `_` joins the words of an alternative.
TEMPLATES = """
{team} beat|defeated|crushed {team} <goals> at_home|away|in_the_rain|in_{town}
{name} beat|defeated|crushed {name} <sets> in_the_final|indoors|on_clay|in_{town}
{people} <role> {person} beat|defeated {name} <sets>
{team} <goal> {team} <goal>
{name} ( {town} ) beat {person} ( {people} ) <sets>
{team} signed|sold|dropped the <player> {person} after a match with {team}
{team} , without {name} , lost <goals> to {team}
{name} , without a coach|break|plan , lost <sets> to {name}
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
""".strip().split("\n")
HEADLINE_SHARE = 0.07


def _name_part(draw: Draw, part: str) -> str:
    """A token for one part of a pattern of `ENTITY_SLOTS`."""
    start, middle = draw.pick(NAME_STARTS), draw.pick(NAME_MIDDLES)
    if part == "N":
        name = start + (middle if draw.chance(0.6) else "") + draw.pick(NAME_ENDS)
        return draw.pick(WORD_NAMES) if draw.chance(0.15) else name
    if part == "F":
        name = start + (middle if draw.chance(0.5) else "") + draw.pick(FIRST_NAME_ENDS)
        return f"{start[0]}." if draw.chance(0.15) else name
    return start + middle + draw.pick(COUNTRY_ENDS) if part == "C" else part


def _expand(draw: Draw, template: str) -> tuple[list[str], list[str]]:
    """Tokens and tags of a template: alternatives, common words and names are chosen here."""
    words: list[str] = []
    tags: list[str] = []
    for place in template.split():
        choice = draw.pick(place.split("|"))
        for slot, common in COMMON_WORDS.items():
            if slot in choice:
                choice = choice.replace(slot, draw.pick(common.split()))
        if choice in ENTITY_SLOTS:
            entity, patterns = ENTITY_SLOTS[choice]
            more_words = [_name_part(draw, part) for part in draw.pick(patterns.split()).split("_")]
            more_tags = [f"B-{entity}"] + [f"I-{entity}"] * (len(more_words) - 1)
        elif "_" in choice:
            more_words, more_tags = _expand(draw, choice.replace("_", " "))
        else:
            more_words, more_tags = [choice], ["O"]
        words += more_words
        tags += more_tags
    return words, tags


def _entity_example(draw: Draw) -> tuple[list[str], list[int]]:
    """A filled template, sometimes with a lead, a second template or a tail, and sometimes as a headline."""
    template = draw.pick(TEMPLATES)
    if draw.chance(0.15):
        template = f"<lead> {template}"
    if draw.chance(0.15):
        template += f" {draw.pick((', while', ', and', ';', ', but'))} {draw.pick(TEMPLATES)}"
    if draw.chance(0.2):
        template += " <tail>"
    words, tags = _expand(draw, template)
    if draw.chance(HEADLINE_SHARE):
        words = [word.upper() for word in words]
    else:
        words, tags = [words[0][0].upper() + words[0][1:], *words[1:], "."], [*tags, "O"]
    return words, [ENTITY_LABELS.index(tag) for tag in tags]
