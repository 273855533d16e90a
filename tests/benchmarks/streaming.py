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

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers

import adalayers
from adalayers.deploy.attached import Attached
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from adalayers.storage import hub
from tests.benchmarks.made import TINY, Sizes
from tests.benchmarks.measure import interleaved, logger
from tests.helpers.tiny import tiny_backbone

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
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
        self.bart, self.streams, self.width = family == "bart", (Stream("encoder", layers),), width
        sizes: dict[str, int] = {"intermediate_size": 4 * width}
        if self.bart:
            sizes = dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 4 * width)
            sizes |= {"decoder_layers": layers, "max_position_embeddings": 1024}
        folder = tiny_backbone(root / family, family, layers=layers, width=width, heads=width // 64, **sizes)
        with hub.quiet():
            models = [transformers.AutoModel.from_pretrained(folder).eval() for _ in range(2)]
        self.model, self.second = (model.to(DEVICE) for model in models)
        ids = torch.randint(5, 60, (sequences, tokens), generator=torch.Generator().manual_seed(1)).to(DEVICE)
        self.encoded = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        self.inputs = self.encoded | ({"decoder_input_ids": ids[:, :DECODER_TOKENS]} if self.bart else {})
        self.outputs: list[torch.Tensor] = []

    def tasks(self, n: int) -> dict[str, FusionModel]:
        """Return n tasks of random weights."""
        tasks = {}
        for i in range(n):
            head: Any = ("sequence", "token")[i % 2]
            shape = Shape(head, LABELS[head], self.streams, self.width, "bart" if self.bart else "roberta")
            tasks[f"task{i}"] = FusionModel(LayerMixConfig(), shape, seed=i).eval().to(DEVICE)
        return tasks

    def run(self) -> None:
        self.outputs.append(self.model(**self.inputs)[0])
        now()

    def run_second(self) -> None:
        """Answer one task from a base model of its own."""
        self.run()
        inner: Any = self.second.get_encoder() if self.bart else self.second
        states = inner(**self.encoded, output_hidden_states=True)["hidden_states"]
        (task,) = self.tasks(1).values()
        lengths = self.encoded["attention_mask"].sum(1).cpu()
        task({state: states[state.number].flatten(0, 1) for state in task.live()}, lengths)
        now()


def now() -> float:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize(DEVICE)
    return time.perf_counter()


class Clock:
    """Seconds spent in some functions, those that they call counted once; on a GPU the device is waited for."""

    seconds, _within = 0.0, False

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            if self._within:
                return function(*given, **named)
            began, self._within = now(), True
            try:
                return function(*given, **named)
            finally:
                self.seconds += now() - began
                self._within = False

        return run


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most bytes allocated at once while `run` runs, above those before."""
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats(DEVICE)
        before = torch.cuda.memory_allocated(DEVICE)
        run()
        return torch.cuda.max_memory_allocated(DEVICE) - before
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events: Any = seen.profiler.kineto_results.events()  # type: ignore[union-attr]
    sizes = sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")
    return int(np.cumsum([size for *_, size in sizes]).max())


@torch.no_grad()
def streaming(base: Base, counts: Sequence[int], repeats: int) -> dict[str, float]:
    """Return the keys of a shape."""
    measured, tensor = {}, base.inputs["input_ids"].numel() * K * 4
    base.run()  # a GPU's libraries take their workspace in the first pass
    own = peak_bytes(base.run)
    for n in counts:
        clock = Clock()
        hooks = {name: clock.timed(getattr(Attached, name)) for name in ("_begin", "_record", "_end")}
        with adalayers.attach(base.model, **base.tasks(n)) as attached:
            answers = clock.timed(attached.outputs)

            def answered(answers: Callable[[], object] = answers) -> None:
                base.run()
                answers()

            peak, shares = peak_bytes(answered), []
            with mock.patch.multiple(Attached, **hooks):  # on a GPU this makes every hook wait
                for _ in range(repeats):
                    clock.seconds, began = 0.0, now()
                    answered()
                    shares.append(clock.seconds / (now() - began - clock.seconds))
        measured[f"stream_{n}_bytes_over_tensors"] = (peak - own) / (n * tensor)
        measured[f"stream_{n}_over_base"] = 1 + float(np.median(shares))
    seconds = interleaved({"base": base.run, "second": base.run_second}, repeats)
    logger.info(f"a pass of the base model {seconds['base']:.3g} s, its peak {own / 1e6:.4g} MB")
    return measured | {"stream_second_model_over_base": seconds["second"] / seconds["base"]}


def all_shapes(root: Path, sizes: Sizes) -> dict[str, float | bool]:
    """Return the keys of all shapes."""
    tiny, measured, identical = sizes is TINY, dict[str, Any](), True
    sequences, tokens = (2, 32) if tiny else (64 if DEVICE.type == "cuda" else 8, 512)
    for name, (family, layers) in SHAPES.items():
        base = Base(root, family, 2 if tiny else layers, 128 if tiny else 1024, sequences, tokens)
        keys = streaming(base, (1, 2, 4, 8)[: sizes.levels], min(3, sizes.repeats))
        measured |= {f"{key}_{name}": value for key, value in keys.items()}
        identical = identical and all(torch.equal(each, base.outputs[0]) for each in base.outputs)
    most = max(value for key, value in measured.items() if "bytes_over" in key)
    return {**measured, "stream_bytes_over_tensor": most, "base_output_identical": identical}
