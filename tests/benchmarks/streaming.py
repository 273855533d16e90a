"""python -m tests.benchmarks streaming: what trained tasks cost next to a base model's own pass (thesis 5.3).

RoBERTa-large's and BART-large's shapes with random weights, 8 sequences of 512 tokens on a CPU, 64 on a GPU, without
the heads of their own tasks; BART reads 128 tokens in its decoder. Tasks have the default settings (k = 64), every
second one a label per word. Prints a table and, as the last line, one JSON object; by shape:

stream_N_over_base               a pass with N tasks over one without: time in hooks and heads, of the same passes
stream_N_over_base_interleaved   the same from medians of passes that took turns
stream_N_bytes_over_tensors      peak of allocated bytes above the base model's own, over N tensors F, float32
stream_hidden_states_*, stream_second_model_*   output_hidden_states=True, and a second base model, for one task
stream_bytes_over_tensor         the largest stream_N_bytes_over_tensors
base_output_identical            whether the base model's output was the same bit for bit in all of it
"""

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

import adalayers
from adalayers.deploy.recorder import PassRecorder
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from tests.benchmarks.measure import logger
from tests.benchmarks.sizes import TINY, Sizes

K = LayerMixConfig().k
DECODER_TOKENS = 128
LABELS = {"sequence": 2, "token": 9}
SHAPES = {"roberta_large": ("roberta", 24, 1024, 16), "bart_large": ("bart", 12, 1024, 16)}
"""Name -> family, layers, width and heads of its encoder."""


@dataclass(frozen=True)
class Setup:
    """A base model's shape, and the size of its passes: sequences of so many tokens."""

    name: str
    family: str
    layers: int
    width: int
    heads: int
    sequences: int
    tokens: int
    device: torch.device

    def model(self) -> Any:
        """Return a base model of random weights."""
        import transformers

        sizes: dict[str, Any] = {"vocab_size": 50265}
        if self.family == "bart":
            sizes |= {"d_model": self.width, "max_position_embeddings": 1024}
            for side in ("encoder", "decoder"):
                sizes |= {f"{side}_layers": self.layers, f"{side}_attention_heads": self.heads}
                sizes[f"{side}_ffn_dim"] = 4 * self.width
        else:
            sizes |= {
                "hidden_size": self.width,
                "num_hidden_layers": self.layers,
                "num_attention_heads": self.heads,
                "intermediate_size": 4 * self.width,
                "max_position_embeddings": 514,
                "type_vocab_size": 1,
            }
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(self.family, **sizes)
        return transformers.AutoModel.from_config(config).eval().to(self.device)

    def inputs(self) -> dict[str, torch.Tensor]:
        """Return random token ids."""
        generator = torch.Generator().manual_seed(1)
        ids = torch.randint(10, 50000, (self.sequences, self.tokens), generator=generator).to(self.device)
        decoder = {"decoder_input_ids": ids[:, :DECODER_TOKENS]} if self.family == "bart" else {}
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **decoder}

    def tasks(self, n: int) -> dict[str, FusionModel]:
        """Return n tasks of random weights."""
        tasks = {}
        for i in range(n):
            head: Any = ("sequence", "token")[i % 2]
            shape = Shape(head, LABELS[head], (Stream("encoder", self.layers),), self.width, self.family)
            tasks[f"task{i}"] = FusionModel(LayerMixConfig(), shape, seed=i).eval().to(self.device)
        return tasks


class Clock:
    """Seconds spent in some functions, those that they call counted once; on a GPU the device is waited for."""

    def __init__(self, device: torch.device):
        self.device, self.seconds, self._within = device, 0.0, False

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            if self._within:
                return function(*given, **named)
            began, self._within = self.now(), True
            try:
                return function(*given, **named)
            finally:
                self.seconds += self.now() - began
                self._within = False

        return run

    def now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    @contextlib.contextmanager
    def in_hooks(self) -> Iterator[None]:
        """Count the time in the hooks of attached tasks meanwhile; on a GPU this makes every hook wait."""
        with contextlib.ExitStack() as patches:
            for name in ("_begin", "_record", "_end"):
                patches.enter_context(
                    mock.patch.object(PassRecorder, name, self.timed(getattr(PassRecorder, name)))
                )
            yield


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Return the most bytes allocated at once while `run` runs, above those before."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events: Any = seen.profiler.kineto_results.events()  # type: ignore[union-attr]
    sizes = sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")
    return int(np.cumsum([size for *_, size in sizes]).max())


class Rivals:
    """The ways to answer that are compared: a pass of the base model, and what is done next to it.

    outputs: what the base model gave, by the way
    """

    def __init__(self, setup: Setup, counts: Sequence[int]):
        self.setup, self.clock = setup, Clock(setup.device)
        self.model, self.inputs, self.task = setup.model(), setup.inputs(), setup.tasks(1)["task0"]
        self.second = copy.deepcopy(self.model)
        self.counts = [str(n) for n in counts]
        self.names = ["base", *self.counts, "hidden_states", "second_model"]
        self.outputs: dict[str, torch.Tensor] = {}

    def run(self, name: str) -> tuple[float, float]:
        """Return the seconds of a pass and its answers, and those of hooks and heads within it."""
        with self._ready(name) as answer:
            self.clock.seconds = 0.0
            began = self.clock.now()
            answer()
            return self.clock.now() - began, self.clock.seconds

    def peak(self, name: str) -> int:
        """Return the most bytes that a pass and its answers allocate."""
        with self._ready(name) as answer:
            return peak_bytes(answer, self.setup.device)

    def outputs_are_identical(self) -> bool:
        """Return whether the base model gave the same with each of the rivals next to it."""
        return all(torch.equal(output, self.outputs["base"]) for output in self.outputs.values())

    @contextlib.contextmanager
    def _ready(self, name: str) -> Iterator[Callable[[], object]]:
        """Yield what passes the base model and answers in one of the ways."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            answers: Callable[[], object] = getattr(self, f"_{name}", lambda: None)
            if name in self.counts:
                tasks = self.setup.tasks(int(name))
                answers = stack.enter_context(adalayers.attach(self.model, **tasks)).outputs
            timed, named = self.clock.timed(answers), {"output_hidden_states": name == "hidden_states"}

            def run() -> None:
                output = self.model(**self.inputs, **named)
                self.outputs[name] = output[0]
                self._given = output if name == "hidden_states" else None
                timed()

            yield run
            self._given = None

    def _hidden_states(self) -> None:
        key = "encoder_hidden_states" if self.setup.family == "bart" else "hidden_states"
        self._answer(self._given[key])

    def _second_model(self) -> None:
        """Answer one task from a base model of its own."""
        inner: Any = self.second.get_encoder() if self.setup.family == "bart" else self.second
        mask = {name: self.inputs[name] for name in ("input_ids", "attention_mask")}
        self._answer(inner(**mask, output_hidden_states=True)["hidden_states"])

    def _answer(self, states: Sequence[torch.Tensor]) -> None:
        lengths = torch.full((self.setup.sequences,), self.setup.tokens)
        self.task({state: states[state.number].flatten(0, 1) for state in self.task.live()}, lengths)


def streaming(setup: Setup, counts: Sequence[int], repeats: int) -> tuple[dict[str, float], bool]:
    """Return the keys of a shape, and whether the base model's output stayed the same."""
    rivals, measured = Rivals(setup, counts), {}
    tensor = setup.sequences * setup.tokens * K * 4
    rivals.run("base")  # a GPU's libraries take their workspace in the first pass
    peaks, shares = {}, {}
    for name in rivals.names:  # also what warms up
        peaks[name] = rivals.peak(name)
        logger.info(f"{setup.name}, {name}: peak {peaks[name] / 1e6:.5g} MB")
    same = rivals.outputs_are_identical()
    with rivals.clock.in_hooks():
        for name in rivals.counts:
            runs = [rivals.run(name) for _ in range(repeats)]
            shares[name] = float(np.median([own / (whole - own) for whole, own in runs]))
            logger.info(
                f"{setup.name}, {name}: {shares[name]:.3g} of the base model's time in hooks and heads"
            )
    seconds = [{name: rivals.run(name)[0] for name in rivals.names} for _ in range(repeats)]
    medians = {name: float(np.median([taken[name] for taken in seconds])) for name in rivals.names}
    same = same and rivals.outputs_are_identical()
    for name in rivals.names[1:]:
        tensors = tensor * (int(name) if name in shares else 1)
        measured[f"stream_{name}_bytes_over_tensors"] = (peaks[name] - peaks["base"]) / tensors
        ratio = medians[name] / medians["base"]
        if name in shares:
            measured[f"stream_{name}_over_base"] = 1 + shares[name]
            measured[f"stream_{name}_over_base_interleaved"] = ratio
        else:
            measured[f"stream_{name}_over_base"] = ratio
    logger.info(
        f"{setup.name}: a pass of the base model {medians['base']:.3g} s, its peak {peaks['base'] / 1e6:.4g} MB, "
        f"a tensor of F {tensor / 1e6:.4g} MB"
    )
    return {f"{key}_{setup.name}": value for key, value in measured.items()}, same


def all_shapes(root: Path, sizes: Sizes) -> dict[str, float | bool]:
    """Return the keys of all shapes."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    counts, repeats = (1, 2, 4, 8)[: sizes.levels], min(3, sizes.repeats)
    sequences, tokens = (2, 160) if sizes is TINY else (64 if device.type == "cuda" else 8, 512)
    measured: dict[str, float | bool] = {}
    identical = True
    for name, (family, *shape) in SHAPES.items():
        layers, width, heads = (3, 512, 8) if sizes is TINY else shape
        setup = Setup(name, family, layers, width, heads, sequences, tokens, device)
        keys, same = streaming(setup, counts, repeats)
        measured |= keys
        identical = identical and same
    most = [measured[f"stream_{n}_bytes_over_tensors_{name}"] for name in SHAPES for n in counts]
    return {**measured, "stream_bytes_over_tensor": max(most), "base_output_identical": identical}
