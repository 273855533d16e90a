"""`study.json` as typed records, one definition for its writer and its readers."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from adalayers.comparisons import Comparison, PlannedArm
from adalayers.errors import BadInput
from adalayers.presets import Published
from adalayers.provenance import BackboneId, DatasetId, Reading
from adalayers.request import DataRequest, StudyRequest
from adalayers.results.files import RESTORE, STUDY
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.states import Settings, Stream
from adalayers.storage.folder import Folder, damaged
from adalayers.storage.to_json import JsonObject, to_json
from adalayers.study import Factor, Variant

STUDY_FORMAT = 3


def later(default: Any) -> Any:
    """Return a field that files written before it do not have; any other is in every file."""
    return field(default=default, metadata={"later": True})


@dataclass(frozen=True, kw_only=True)
class DroppedArm:
    arm: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class RequestRecord(StudyRequest):
    """What a study was asked for, by its flags, and what that means for one backbone and dataset.

    data:       the backbone and dataset, by the ids that aliases and copies share
    label:      of the study; own: the flags that it alone has
    method:     what a reader must know of the model and the factors before the numbers: title -> paragraph
    spaces:     what each search searches, by its name ("" where there is one): hyperparameter -> domain in Optuna's
                JSON ({"name": ..., "attributes": ...})
    scientific, nuisance: names of those under study, and of those tuned along
    factors:    how reports call what is under study
    fixed:      hyperparameters that all arms share unless they say otherwise
    comparisons: what was planned to be compared
    variants:   ways in which the models of confirmed trials were scored otherwise, as `evaluations.parquet` names them
    parts:      sections of the report that answer the question
    headline:   arms or roles that the page opens with
    published:  what was published for arms
    title:      what the study is about, where its name is no words for that
    """

    data: DataRequest = field(default_factory=DataRequest)
    label: str | None = None
    own: dict[str, str] = field(default_factory=dict)
    question: str = ""
    method: dict[str, str] = field(default_factory=dict)
    metric: str = ""
    mode: Literal["max"] = "max"
    control: str = ""
    scientific: tuple[str, ...] = ()
    nuisance: tuple[str, ...] = ()
    factors: tuple[Factor, ...] = ()
    spaces: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    arms: tuple[PlannedArm, ...] = ()
    dropped_arms: tuple[DroppedArm, ...] = ()
    notes: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    variants: dict[str, Variant] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    headline: tuple[str, ...] = later(())
    title: str = later("")
    published: tuple[Published, ...] = ()

    @property
    def space(self) -> dict[str, dict[str, Any]]:
        """The domain of each hyperparameter that is searched; of one that several search, as the first has it."""
        return {name: domain for space in reversed(self.spaces.values()) for name, domain in space.items()}

    @property
    def rate(self) -> float | None:
        """The learning rate of all arms that no search has tuned; None where they have none or several."""
        rates = {arm.config.get("lr") for arm in self.arms if arm.role != "best"}
        rate = rates.pop() if len(rates) == 1 else None
        return rate if isinstance(rate, int | float) else None

    def identity(self, backbone: BackboneId, dataset: DatasetId) -> JsonObject:
        """Return what makes a study on a backbone and dataset this one, by name, in JSON's own types."""
        flags = {
            each.name: getattr(record, each.name)
            for record in (self.data, self)
            for each in dataclasses.fields(record)
            if "help" in each.metadata and not each.metadata.get("may_change")
        }
        # Not revisions: a mirror does not know them, and fingerprints say all that matters of them.
        of_data = {"backbone fingerprint": backbone.fingerprint, "dataset fingerprint": dataset.fingerprint}
        identity: JsonObject = to_json({**flags, **of_data, "label": self.label, **self.own})
        return identity


@dataclass(frozen=True, kw_only=True)
class BackboneRecord(BackboneId):
    """The backbone of a study.

    path:             the folder that it was read from
    layer_parameters: of one of its layers; 0 where that is not known
    objective:        what it was pretrained for, "" where that is not known
    note:             of hidden states that were computed elsewhere: of what model, and where the last one lies
    """

    name: str = ""
    path: str = ""
    family: str = ""
    layers: int = 0
    width: int = 0
    parameters: int = 0
    layer_parameters: int = 0
    objective: str = ""
    note: str = ""
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DatasetRecord(Reading, DatasetId):
    """The data of a study; what is by split has the keys train, validation, test (baseline: val, test).

    kind:      the kind of task, by name; task: in words
    labels:    names of the classes; none where labels are numbers
    metric:    the dataset's own selection metric
    examples, tokens: counts by split
    truncated: by split, {"examples": cut, and for tokens "words": lost}, to the maximum length
    shared:    by split, how many of its examples also stand in train
    baseline:  what the best constant answer scores: the most frequent label, or the mean
    distribution: by split, how often each class is a label, or what describes the numbers that are labels
    """

    name: str = ""
    kind: str = ""
    task: str = ""
    labels: tuple[str, ...] = ()
    metric: str = ""
    examples: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    truncated: dict[str, dict[str, int]] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    baseline: dict[str, float] = field(default_factory=dict)
    distribution: dict[str, dict[str, float]] = field(default_factory=dict)


def splits_in_words(roles: Mapping[str, str], unused: Sequence[str]) -> str:
    """Return "train = train, validation = a tenth of train, test = validation; not used: test (no labels)"."""
    splits = ", ".join(f"{role} = {source}" for role, source in roles.items())
    return splits + (f"; not used: {', '.join(unused)}" if unused else "")


@dataclass(frozen=True, kw_only=True)
class FeaturesRecord:
    """How hidden states were had; pooling: what of a text was kept in each layer, "" for every token."""

    mode: str = ""
    precision: str = ""
    pooling: str = ""


@dataclass(frozen=True, kw_only=True)
class GitRecord:
    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True, kw_only=True)
class EnvironmentRecord:
    """On what a study ran.

    hidden_states: those mixed by default, as `mix/weight_<state>` names them ("01", "00" the embeddings)
    code:          hash of the code that trials ran, which each worker has compared; "" where nothing says
    """

    backbone: BackboneRecord = field(default_factory=BackboneRecord)
    dataset: DatasetRecord = field(default_factory=DatasetRecord)
    features: FeaturesRecord = field(default_factory=FeaturesRecord)
    hidden_states: tuple[str, ...] = ()
    git: GitRecord = field(default_factory=GitRecord)
    code: str = later("")
    packages: dict[str, str] = field(default_factory=dict)
    python: str = ""
    platform: str = ""
    device: str = ""

    @property
    def machine(self) -> str:
        """What numbers depend on beside code and seed: "cpu (x86_64), torch 2.13.0"."""
        return f"{self.device}, torch {self.packages.get('torch', '')}"

    @property
    def software(self) -> str:
        """A hash of code, packages, Python and device, on which numbers depend beside seed and data; "" if unknown."""
        known = (self.code, *sorted(self.packages.items()), self.python, self.platform, self.device)
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16] if self.code else ""


@dataclass(frozen=True, kw_only=True)
class Run(GitRecord):
    """One run of a study's command.

    confirmed:   confirmed trials that it added; test_scored: of them, those that scored the test split
    seeds:       the seeds that it added to each arm
    planned:     the most seeds an arm was to have; 0 where nothing says
    analyses:    those of the confirmed trials that it made
    machine:     device and version of torch where the driver ran
    software:    as `EnvironmentRecord.software`
    """

    started: str = ""
    ended: str = ""
    seconds: float = 0.0
    confirmed: int = 0
    test_scored: int = 0
    seeds: dict[str, list[int]] = field(default_factory=dict)
    planned: int = 0
    until_decided: bool = False
    analyses: tuple[InterimAnalysis, ...] = ()
    machine: str = ""
    software: str = later("")


@dataclass(frozen=True, kw_only=True)
class RunsRecord:
    """What happened to a study over all its runs.

    counts: stage -> status -> trials; analyses: analyses of the confirmed trials
    test_opened: runs in which confirmed trials scored the test split; None where nothing says
    published: whether the folder was cut down to what its page needs (`reports.publish`)
    """

    started: str = ""
    ended: str = ""
    state: str = ""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    wall_seconds: float = 0.0
    training_seconds: float = 0.0
    concurrency: int = 0
    analyses: int = 1
    test_opened: int | None = None
    smoke: bool = False
    published: bool = later(False)
    history: tuple[Run, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    format: int = STUDY_FORMAT
    id: str = ""
    study: str = ""
    name: str = ""
    request: RequestRecord = field(default_factory=RequestRecord)
    environment: EnvironmentRecord = field(default_factory=EnvironmentRecord)
    runs: RunsRecord = field(default_factory=RunsRecord)

    @property
    def identity(self) -> JsonObject:
        """What makes it another study, by name."""
        return self.request.identity(self.environment.backbone, self.environment.dataset)

    def as_json(self) -> JsonObject:
        """Return the records as JSON's own types."""
        document: JsonObject = to_json(dataclasses.asdict(self))
        return document


def read_study(folder: Folder, *, advice: str = RESTORE) -> StudyFile:
    """Return a folder's `study.json`.

    Raises:
        BadInput: It is missing, of another format, or not what a study writes: what it lacks, has too much, or has as
            something of another type is named. The message ends in the advice.
    """
    try:
        document = folder.read_json(STUDY)
        written = document.get("format") if isinstance(document, Mapping) else None
        if not isinstance(written, int) or written == STUDY_FORMAT:
            study: StudyFile = from_json(StudyFile, document)
            return study
    except (ValueError, OSError) as error:
        lost = "what the study was asked for, and its analyses, are lost"
        raise damaged(folder, STUDY, error, lost=lost, advice=advice) from error
    raise BadInput(
        f"wanted {STUDY} of format {STUDY_FORMAT}, got format {written} in {folder.uri}, written by another version; "
        "use that version, or start again with --fresh or --label"
    )


def from_json(kind: Any, value: Any, path: str = "") -> Any:
    """Return a value of JSON as the type `kind`, of which it has every field, by its exact type.

    Args:
        kind: A dataclass, or a container of some.
        value: Of JSON's own types.
        path: Where it stands in its document.

    Raises:
        ValueError: Something is missing, too much, or of another type; the message says where.
    """
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
    try:
        read = _adapter(kind).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ValueError(f"{_at(path, *first['loc']) or 'it'}: {first['msg']}") from error
    if lacking := next(_lacking(read, value, path), None):
        raise ValueError(f"{lacking} is missing")
    return read


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


def _lacking(read: Any, value: Any, path: str) -> Iterator[str]:
    """Yield where `value` has no word on a field of the records that were read from it."""
    if dataclasses.is_dataclass(read):
        for each in dataclasses.fields(read):
            if each.name in value:
                yield from _lacking(getattr(read, each.name), value[each.name], _at(path, each.name))
            elif not each.metadata.get("later"):
                yield _at(path, each.name)
    elif isinstance(read, tuple):
        for place, item in enumerate(read):
            yield from _lacking(item, value[place], _at(path, place))
    elif isinstance(read, dict):
        for name, item in read.items():
            yield from _lacking(item, value[name], _at(path, name))


def _at(path: str, *places: str | int) -> str:
    for place in places:
        path += f"[{place}]" if isinstance(place, int) else f".{place}"
    return path.removeprefix(".")
