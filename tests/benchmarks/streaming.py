"""python -m tests.benchmarks streaming: what trained tasks cost next to a base model's own pass (thesis 5.3).

RoBERTa-large's and BART-large's shapes with random weights, 8 sequences of 512 tokens on a CPU, 64 on a GPU, without
the heads of their own tasks; BART reads 128 tokens in its decoder. Tasks have the default settings (k = 64), every
second one a label per word. Prints a table and, as the last line, one JSON object; by shape:

stream_N_over_base               a pass with N tasks over one without: time in hooks and heads, of the same passes
stream_N_bytes_over_tensors      peak of allocated bytes above the base model's own, over N tensors F, float32
stream_second_model_over_base    the same task over a second base model of its own, from medians of passes in turn
stream_bytes_over_tensor         the largest stream_N_bytes_over_tensors
base_output_identical            whether the base model's output was the same bit for bit in all of it
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers

import adalayers
from adalayers.deploy.recorder import PassRecorder
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from adalayers.storage import hub
from tests.benchmarks.measure import interleaved, logger
from tests.benchmarks.sizes import TINY, Sizes
from tests.helpers.tiny import tiny_backbone

K = LayerMixConfig().k
DECODER_TOKENS = 128
LABELS = {"sequence": 2, "token": 9}
SHAPES = {"roberta_large": ("roberta", 24), "bart_large": ("bart", 12)}
"""Name -> family, and layers of width 1024 of its encoder."""


class Base:
    """A base model of random weights, and what it reads.

    Attributes:
        outputs: What it gave in each of its passes.
    """

    def __init__(self, root: Path, family: str, layers: int, width: int, sequences: int, tokens: int):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.family, self.layers, self.width, self.sequences = family, layers, width, sequences
        inner = ("encoder_ffn_dim", "decoder_ffn_dim") if family == "bart" else ("intermediate_size",)
        sizes: dict[str, int] = dict.fromkeys(inner, 4 * width)
        if family == "bart":
            sizes |= {"decoder_layers": layers, "max_position_embeddings": 1024}
        folder = tiny_backbone(root / family, family, layers=layers, width=width, heads=width // 64, **sizes)
        with hub.quiet():
            models = [transformers.AutoModel.from_pretrained(folder).eval() for _ in range(2)]
        self.model, self.second = (model.to(self.device) for model in models)
        ids = torch.randint(5, 60, (sequences, tokens), generator=torch.Generator().manual_seed(1))
        self.inputs = {"input_ids": ids.to(self.device)}
        self.inputs["attention_mask"] = torch.ones_like(self.inputs["input_ids"])
        if family == "bart":
            self.inputs["decoder_input_ids"] = self.inputs["input_ids"][:, :DECODER_TOKENS]
        self.outputs: list[torch.Tensor] = []

    def tasks(self, n: int) -> dict[str, FusionModel]:
        """Return n tasks of random weights."""
        tasks = {}
        for i in range(n):
            head: Any = ("sequence", "token")[i % 2]
            shape = Shape(head, LABELS[head], (Stream("encoder", self.layers),), self.width, self.family)
            tasks[f"task{i}"] = FusionModel(LayerMixConfig(), shape, seed=i).eval().to(self.device)
        return tasks

    def run(self) -> None:
        self.outputs.append(self.model(**self.inputs)[0])
        self.now()

    def run_second(self) -> None:
        """Answer one task from a base model of its own."""
        self.run()
        inner: Any = self.second.get_encoder() if self.family == "bart" else self.second
        mask = {name: self.inputs[name] for name in ("input_ids", "attention_mask")}
        states = inner(**mask, output_hidden_states=True)["hidden_states"]
        (task,) = self.tasks(1).values()
        lengths = torch.full((self.sequences,), mask["input_ids"].shape[1])
        task({state: states[state.number].flatten(0, 1) for state in task.live()}, lengths)
        self.now()

    def now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


class Clock:
    """Seconds spent in some functions, those that they call counted once; on a GPU the device is waited for."""

    def __init__(self, now: Callable[[], float]):
        self.now, self.seconds, self._within = now, 0.0, False

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

    @contextlib.contextmanager
    def in_hooks(self) -> Iterator[None]:
        """Count the time in the hooks of attached tasks meanwhile; on a GPU this makes every hook wait."""
        with contextlib.ExitStack() as patches:
            for name in ("_begin", "_record", "_end"):
                own = self.timed(getattr(PassRecorder, name))
                patches.enter_context(mock.patch.object(PassRecorder, name, own))
            yield


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Return the most bytes allocated at once while `run` runs, above those before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events: Any = seen.profiler.kineto_results.events()  # type: ignore[union-attr]
    sizes = sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")
    return int(np.cumsum([size for *_, size in sizes]).max())


@torch.no_grad()
def streaming(base: Base, counts: Sequence[int], repeats: int) -> dict[str, float]:
    """Return the keys of a shape."""
    measured, tensor = {}, base.sequences * base.inputs["input_ids"].shape[1] * K * 4
    base.run()  # a GPU's libraries take their workspace in the first pass
    own = peak_bytes(base.run, base.device)
    for n in counts:
        clock = Clock(base.now)
        with adalayers.attach(base.model, **base.tasks(n)) as attached:
            answers = clock.timed(attached.outputs)

            def answered(answers: Callable[[], object] = answers) -> None:
                base.run()
                answers()

            peak, shares = peak_bytes(answered, base.device), []
            with clock.in_hooks():
                for _ in range(repeats):
                    clock.seconds, began = 0.0, base.now()
                    answered()
                    shares.append(clock.seconds / (base.now() - began - clock.seconds))
        measured[f"stream_{n}_bytes_over_tensors"] = (peak - own) / (n * tensor)
        measured[f"stream_{n}_over_base"] = 1 + float(np.median(shares))
    seconds = interleaved({"base": base.run, "second": base.run_second}, repeats)
    logger.info(f"a pass of the base model {seconds['base']:.3g} s, its peak {own / 1e6:.4g} MB")
    return measured | {"stream_second_model_over_base": seconds["second"] / seconds["base"]}


def all_shapes(root: Path, sizes: Sizes) -> dict[str, float | bool]:
    """Return the keys of all shapes."""
    tiny, gpu, measured, identical = sizes is TINY, torch.cuda.is_available(), dict[str, Any](), True
    sequences, tokens = (2, 32) if tiny else (64 if gpu else 8, 512)
    for name, (family, layers) in SHAPES.items():
        base = Base(root, family, 2 if tiny else layers, 128 if tiny else 1024, sequences, tokens)
        keys = streaming(base, (1, 2, 4, 8)[: sizes.levels], min(3, sizes.repeats))
        measured |= {f"{key}_{name}": value for key, value in keys.items()}
        identical = identical and all(torch.equal(each, base.outputs[0]) for each in base.outputs)
    most = max(value for key, value in measured.items() if "bytes_over" in key)
    return {**measured, "stream_bytes_over_tensor": most, "base_output_identical": identical}
