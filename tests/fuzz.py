"""Odd and damaged input, drawn at random: flags, hyperparameters, datasets, backbones, results, best/ folders.

    python -m tests.fuzz [--cases 2000] [--seed 0] [--kind NAME...]

Whatever comes in, the library must do its work or raise `BadInput`: no other exception, no hang, and no file changed
that held what cannot be made again. hypothesis draws the cases and makes wrong ones as small as it can. It prints a
table by kind, and the wrong cases. 2,000 take a few minutes on one quiet core; the tests run a few of each kind.
"""

import argparse
import collections
import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
import random
import re
import shutil
import signal
import string
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import pandas as pd
import torch
from hypothesis import strategies
from safetensors.torch import load_file, save_file

from adalayers.backbones import sources
from adalayers.backbones.loading import load as load_backbone
from adalayers.command.cases import _check_output, _safe
from adalayers.command.flags import parse, parser
from adalayers.command.identity import opened, smallest_effect
from adalayers.config import FUSIONS, hyperparameters, trial_config
from adalayers.data.prepare import prepare
from adalayers.deploy.model_card import model_card
from adalayers.deploy.predictor import Predictor
from adalayers.deploy.task import TrainedTask
from adalayers.errors import BadInput
from adalayers.models.saved import CONFIG, WEIGHTS, save
from adalayers.models.trainable_base.model import build_model
from adalayers.provenance import Provenance
from adalayers.request import DataRequest, StudyRequest
from adalayers.results.files import BEST, TRIALS, read_trials
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import StudyFile, read_study
from adalayers.states import Shape, Stream
from adalayers.storage.folder import Folder
from adalayers.tasks import task as tasks
from adalayers.tuning.cluster import cluster_address
from adalayers.tuning.running_case import RunLog
from studies.alpha_lambda import STUDY
from tests.helpers.long_form import Wrong, in_folder, parser_of
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import rebuild_claims
from tests.helpers.studying import world

HANG_SECONDS = 20
"""Within so many an answer, or a refusal, is there."""
NUMBERS = "-1 0 0.5 1e400 nan inf None ٣ ½"
PLACES = "../.. / ~nouser [::1 s3://[::1 foo://x file:/// http://127.0.0.1:9 ray://x:1 host:port host:1"
NAMES = "minilm cola random:minilm random:random:minilm a/b@c layers:0 layers:1,99"
WORDS = ["", "\n", "x" * 300, "a\x00b", str(10**12), str(2**63), *f"{NUMBERS} {PLACES} {NAMES}".split()]
SHAPE = Shape("sequence", 2, (Stream("encoder", 4),), 32, "bert")


class Fuzz:
    """What cases share: a tiny backbone, dataset, study and trained parts, made once and copied for each case."""

    def __init__(self, root: Path):
        self.root = root
        self.made = world(root / "world")
        _made_study(root / "study")
        self.prepared = prepare(self.request())
        self.parts = self._trained_parts()

    def request(self, **other: Path) -> DataRequest:
        made = self.made | other
        return DataRequest(str(made["backbone"]), str(made["dataset"]), max_length=16)

    def _trained_parts(self) -> list[str]:
        """Write a `best/` of every fusion, of each way to change the base model, and of words; return their names."""
        changed = {base_model: {"base_model": base_model} for base_model in ("adapters", "fine-tuned")}
        words = {"words": {"fusion": "concat", "feedforward": 4}}
        asked = {**{name: {"fusion": name} for name in FUSIONS}, **changed, **words}
        for name, values in asked.items():
            config = trial_config(heads=2, **values)
            shape, labels = self.prepared.shape, ["no", "yes"]
            if name == "words":
                shape, labels = dataclasses.replace(shape, head="token", n_outputs=3), ["O", "B-X", "I-X"]
            model = build_model(config, shape, self.prepared.source)
            model.prepare_training()
            about = {"kind": "token" if name == "words" else "sequence", "labels": labels}
            about["backbone"] = dataclasses.asdict(self.prepared.provenance.backbone)
            folder = Folder(shutil.copytree(self.root / "study", self.root / "parts" / name))
            about["trial_id"] = read_trials(folder)["trial_id"][0]
            save(model, folder.child(BEST), about=about)
        return list(asked)

    @contextlib.contextmanager
    def copy(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            yield Path(shutil.copytree(self.root / name, Path(folder) / Path(name).name))

    # The kinds of cases. Each returns once the library has done its work; what it raises is judged by `run`.

    def flags(self, rng: random.Random) -> None:
        options = [each for each in parser(STUDY)._actions if each.option_strings and each.dest != "help"]
        argv = []
        for _ in range(rng.randrange(1, 5)):
            option = rng.choice(options)
            (name, *_) = option.option_strings
            at, more = rng.randrange(len(name)), rng.choice(string.printable)
            argv.append(name[:at] + more + name[at + 1 :] if rng.random() < 0.1 else name)
            if option.nargs != 0:
                argv += [_value(option, rng) for _ in range(rng.choice((1, 1, 1, 2)))]
        flags = parse(STUDY, argv)
        for request in flags.requests:
            sources.canonical(request.backbone)
            tasks.canonical(request.dataset)
        _check_output(flags.output)
        cluster_address(flags.resources.address)
        config = trial_config(**flags.study.set)
        config.check(SHAPE)
        config.identity(SHAPE)
        if flags.label is not None:
            _safe("--label", flags.label)

    def dataset(self, rng: random.Random) -> None:
        with self.copy("world/echo") as folder:
            path = rng.choice(sorted(folder.iterdir()))
            if rng.random() < 0.5:
                _damage(path, rng)
            else:
                frame = _spoil(pd.read_parquet(path), rng)
                try:
                    frame.to_parquet(path)
                except (ValueError, TypeError):  # a column of several kinds of values is no parquet
                    return
            prepare(self.request(dataset=folder))

    def backbone_folder(self, rng: random.Random) -> None:
        with self.copy("world/tiny") as folder:
            path = rng.choice([path for path in sorted(folder.iterdir()) if path.is_file()])
            _damage_or_spoil(path, rng)
            load_backbone(prepare(self.request(backbone=folder)).source)

    def results(self, rng: random.Random) -> None:
        with self.copy("study") as path:
            (path.parent / STUDY.name).mkdir()  # as studies name their folders
            path = path.rename(path.parent / STUDY.name / "made")
            folder = Folder(path)
            before, study = read_trials(folder), read_study(folder)
            struck = rng.choice([file for file in sorted(path.rglob("*")) if file.is_file()])
            _damage_or_spoil(struck, rng)
            left = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
            wrong: BadInput | None = None
            for attempt in (
                lambda: rebuild_claims(folder),
                lambda: _goes_on(folder, study),
                lambda: StudyRecord(folder, "f1").write(),
            ):
                try:
                    attempt()
                except BadInput as error:
                    wrong = error
            if struck.name != TRIALS and not read_trials(folder)[before.columns].equals(before):
                raise Wrong(f"{TRIALS} has changed though {struck.name} was damaged")
            if wrong is not None and struck in left and struck.read_bytes() != left[struck]:
                raise Wrong(f"{struck.name} was refused ({wrong}), and written over")
            if wrong is not None:
                raise wrong

    def best(self, rng: random.Random) -> None:
        with self.copy(f"parts/{rng.choice(self.parts)}") as study:
            folder = study / BEST
            _spoil_parts(folder, rng)
            task = TrainedTask.from_pretrained(folder, backbone=str(self.made["backbone"])).model
            model_card(task)
            asked = Predictor({"task": task}, self.prepared.source)
            (answers,) = asked.predict(["All that it says, and more."])
            numbers = re.findall(r"\bnan\b|\binf\b", str(dataclasses.asdict(answers["task"])))
            labels = json.loads((folder / CONFIG).read_text()).get("labels", [])
            if numbers or (labels and set(labels) != set(task.about["labels"])):
                raise Wrong(f"an answer from damaged parts: {answers['task']}")


KINDS = {"flags": 6, "dataset": 2, "backbone_folder": 2, "results": 2, "best": 4}
"""Kind of case -> of 16 cases, how many."""


def _made_study(folder: Path) -> None:
    """Write a small study whose trials are named as studies name them."""
    study = MadeUp(seeds=2, search=2, stopped=0, evaluations=2, examples=4)
    for rows in (study.trials, study.history, study.predictions):
        for row in rows:
            row["trial_id"] = f"t{hashlib.sha256(row['trial_id'].encode()).hexdigest()[:12]}"
    for row in study.trials:
        row["fusion"] = "layer-mix"
    study.write(folder)


def _goes_on(folder: Folder, study: StudyFile) -> None:
    """Read of a study what its next run reads before it starts."""
    about = Provenance(backbone=study.environment.backbone, dataset=study.environment.dataset)
    before = opened(folder, study.request, about)
    smallest_effect(folder, before, None, "matthews")
    RunLog(before.runs, StudyRecord(folder, "f1"), before.environment, StudyRequest())


def _word(rng: random.Random) -> str:
    if rng.random() < 0.8:
        return rng.choice(WORDS)
    return "".join(rng.choice(string.printable) for _ in range(rng.randrange(12)))


def _value(option: argparse.Action, rng: random.Random) -> str:
    if option.dest == "set":
        name = rng.choice([*hyperparameters(), "fusion", "nonsense"])
        word = rng.choice(list(FUSIONS)) if name == "fusion" else _word(rng)
        return f"{name}{rng.choice(['=', '=', '=', '', '=='])}{word}"
    if option.choices and rng.random() < 0.5:
        return str(rng.choice(list(option.choices)))
    return _word(rng)


def _damage(path: Path, rng: random.Random) -> None:
    """Cut a file off, empty it, overwrite some of it, add to it, or take it away."""
    data = path.read_bytes()
    at, bytes_ = rng.randrange(len(data) + 1), rng.randbytes(rng.randrange(1, 9))
    new = rng.choice([data[:at], b"", data[:at] + bytes_ + data[at + len(bytes_) :], data + bytes_, None])
    path.unlink()
    if new is not None:
        path.write_bytes(new)


def _damage_or_spoil(path: Path, rng: random.Random) -> None:
    """Damage a file; one of JSON keeps its form half of the time, and has a wrong value."""
    if path.suffix != ".json" or rng.random() < 0.5:
        _damage(path, rng)
        return
    document = json.loads(path.read_text())
    here, steps = document, []
    while isinstance(here, (dict, list)) and here and (not steps or rng.random() < 0.7):
        key = rng.choice(list(here) if isinstance(here, dict) else range(len(here)))
        steps.append((here, key))
        here = here[key]
    if steps:
        holder, key = steps[-1]
        numbers = [-1, 0, 2 * 10**7, 10**12, 1.5, math.nan]
        holder[key] = rng.choice([None, *numbers, "x", [], {}, [None], {"a": 1}, True])
    path.write_text(json.dumps(document))


def _spoil_parts(folder: Path, rng: random.Random) -> None:
    """Damage a file of trained parts: its bytes, what it says, its tensors, or what kind of file it is."""
    how, path = rng.random(), rng.choice([folder / CONFIG, folder / WEIGHTS])
    if how < 0.3:
        _spoil_tensors(folder / WEIGHTS, rng)
    elif how < 0.9:
        _damage_or_spoil(path, rng)
    else:
        path.unlink()
        links = [lambda path: path.symlink_to(path), lambda path: path.symlink_to("no")]
        rng.choice([Path.mkdir, os.mkfifo, *links])(path)


def _spoil_tensors(path: Path, rng: random.Random) -> None:
    """Drop, add or rename a tensor, or change its shape, type or some of its values."""
    tensors = load_file(path)
    name = rng.choice(sorted(tensors))
    tensor = tensors.pop(name)
    other = tensor.flatten().clone()
    numbers = [-1, 2**31, math.nan, math.inf, -3e38] if tensor.is_floating_point() else [-1, 2**31]
    other[rng.randrange(len(other))] = rng.choice(numbers)
    sizes = [rng.choice([0, size, size + 1]) for size in tensor.shape]
    dtype = rng.choice([torch.float64, torch.int64, torch.bool, torch.bfloat16])
    changed = [torch.zeros(sizes), tensor.to(dtype), other.reshape(tensor.shape)]
    instead = [{}, {f"{name}.{_word(rng)}": tensor}, {name: tensor, "one.more": torch.zeros(2)}]
    instead += [{name: each} for each in changed]
    save_file(tensors | rng.choice(instead), path)


def _spoil(frame: pd.DataFrame, rng: random.Random) -> pd.DataFrame:
    """Spoil a column or the number of rows of a table."""
    column, how = rng.choice(list(frame.columns)), rng.randrange(6)
    if how == 0:
        return frame.drop(columns=column)
    if how == 1:
        return frame.iloc[: rng.randrange(3)]
    if how == 2:
        return frame.rename(columns={column: _word(rng) or "y"})
    frame = frame.astype({column: object})
    rows = slice(None) if how == 3 else rng.randrange(len(frame))
    value = rng.choice([None, "", -1, 10**6, "x" * 5000, "\x00", "\ud7ff", 1.5])
    frame.iloc[rows, list(frame.columns).index(column)] = value
    return frame.astype({column: str}) if how == 5 else frame


def run(case: Callable[[random.Random], None], rng: random.Random) -> str:
    """Run one case; return what came of it: done, refused, or what was wrong."""

    def hang(number: int, frame: FrameType | None) -> None:
        raise Wrong(f"more than {HANG_SECONDS} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(HANG_SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            case(rng)
    except BadInput:
        return "refused"
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return f"wrong: {said} ({Path(where.filename).name}:{where.lineno})"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "done"


def fuzz(root: Path, cases: int, seed: int, kinds: list[str]) -> list[str]:
    """Let hypothesis draw so many cases, by the kinds' shares, and shrink what is wrong; return that."""
    shared, wrong = Fuzz(root), []
    outcomes: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in kinds}
    weighted = [kind for kind in kinds for _ in range(KINDS[kind])]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=cases,
        deadline=None,  # HANG_SECONDS is
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    # Half of them draw by draw as hypothesis likes it, at the edges; half as any generator with a seed of hypothesis's.
    @hypothesis.given(
        strategies.sampled_from(weighted),
        strategies.randoms(use_true_random=False) | strategies.randoms(use_true_random=True),
    )
    def is_done_with_or_refused(kind: str, rng: random.Random) -> None:
        outcome = run(getattr(shared, kind), rng)
        outcomes[kind][outcome.partition(":")[0]] += 1
        assert not outcome.startswith("wrong"), f"{kind}: {outcome}"

    try:
        is_done_with_or_refused()
    except* AssertionError as group:
        wrong = ["\n".join([str(error), *getattr(error, "__notes__", [])]) for error in group.exceptions]
        print(*wrong, sep="\n", flush=True)
    for kind, counted in outcomes.items():
        print(f"{kind:<16}", *(f"{counted[word]:>5} {word}" for word in ("done", "refused", "wrong")))
    return wrong


def main() -> int:
    parser = parser_of("fuzz", __doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    given, began = parser.parse_args(), time.monotonic()

    def check(root: Path) -> None:
        wrong = fuzz(root, given.cases, given.seed, given.kind)
        print(f"{given.cases} cases in {time.monotonic() - began:.0f} s, {len(wrong)} wrong")
        if wrong:
            raise Wrong(f"{len(wrong)} cases")

    return in_folder(given.folder, check)


if __name__ == "__main__":
    sys.exit(main())
