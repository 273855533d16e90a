"""python -m tests.benchmarks.streaming [--small]: what trained tasks cost next to a base model's own pass (thesis 5.3).

RoBERTa-large's and BART-large's shapes with random weights, 8 sequences of 512 tokens on a CPU, 64 on a GPU, without
the heads of their own tasks; BART reads 128 tokens in its decoder. Tasks have the default settings (k = 64), those of
odd place a label per word. Prints a table and, as the last line, one JSON object; by shape:

stream_N_over_base               a pass with N tasks over one without: time in hooks and heads, of the same passes
stream_N_over_base_interleaved   the same from medians of passes that took turns
stream_N_bytes_over_tensors      peak of allocated bytes above the base model's own, over N tensors F, float32
stream_hidden_states_*, stream_second_model_*   output_hidden_states=True, and a second base model, for one task
stream_bytes_over_tensor         the largest stream_N_bytes_over_tensors
base_output_identical            whether the base model's output was the same bit for bit in all of it
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import adalayers
from adalayers.console.progress import log_to_stderr
from adalayers.deploy import recorder
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream

logger = logging.getLogger("adalayers.benchmarks")

K = LayerMixConfig().k
DECODER_TOKENS = 128
LABELS = {"sequence": 2, "token": 9}


@dataclass(frozen=True)
class Form:
    """A shape and the size of its passes."""

    name: str
    family: str
    layers: int
    width: int
    heads: int
    batch: int
    time: int
    device: torch.device

    def model(self) -> Any:
        """Return a base model of random weights."""
        import transformers

        sizes: dict[str, Any] = {"vocab_size": 50265}
        if self.family == "bart":
            layers = {f"{side}_layers": self.layers for side in ("encoder", "decoder")}
            heads = {f"{side}_attention_heads": self.heads for side in ("encoder", "decoder")}
            wide = {f"{side}_ffn_dim": 4 * self.width for side in ("encoder", "decoder")}
            sizes |= {"d_model": self.width, "max_position_embeddings": 1024, **layers, **heads, **wide}
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
        ids = torch.randint(10, 50000, (self.batch, self.time), generator=generator).to(self.device)
        own = {"decoder_input_ids": ids[:, :DECODER_TOKENS]} if self.family == "bart" else {}
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **own}

    def tasks(self, n: int) -> dict[str, FusionModel]:
        """Return n tasks of random weights."""
        found = {}
        for i in range(n):
            head: Any = ("sequence", "token")[i % 2]
            shape = Shape(head, LABELS[head], (Stream("encoder", self.layers),), self.width, self.family)
            found[f"task{i}"] = FusionModel(LayerMixConfig(), shape, seed=i).eval().to(self.device)
        return found


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
    found = sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")
    return int(np.cumsum([size for *_, size in found]).max())


class Rivals:
    """The ways to answer that are compared: a pass of the base model, and what is done next to it."""

    def __init__(self, form: Form, counts: list[int], others: bool):
        self.form, self.counts, self.others = form, counts, others
        self.model, self.inputs, self.clock = form.model(), form.inputs(), Clock(form.device)
        self.second = copy.deepcopy(self.model) if others else None
        self.task = form.tasks(1)["task0"]
        self.outputs: dict[str, torch.Tensor] = {}

    def names(self) -> list[str]:
        return ["base", *map(str, self.counts), *(["hidden_states", "second_model"] if self.others else [])]

    def run(self, name: str) -> tuple[float, float]:
        """Return the seconds of a pass, and those of hooks and heads within it."""
        if name.isdigit():
            with adalayers.attach(self.model, **self.form.tasks(int(name))) as attached:
                return self._timed(lambda: self._pass(name), attached.answers)
        return self._timed(
            {
                "base": lambda: self._pass(name),
                "hidden_states": self._hidden_states,
                "second_model": self._second_model,
            }[name]
        )

    def peak(self, name: str) -> int:
        if not name.isdigit():
            return peak_bytes(lambda: self.run(name), self.form.device)
        with adalayers.attach(self.model, **self.form.tasks(int(name))) as attached:

            def both() -> None:
                held = self.model(**self.inputs)
                attached.answers()
                self.outputs[name] = held[0]

            with torch.no_grad():
                return peak_bytes(both, self.form.device)

    def _timed(
        self, one: Callable[[], object], other: Callable[[], object] = lambda: None
    ) -> tuple[float, float]:
        self.clock.seconds = 0.0
        began = self.clock.now()
        with torch.no_grad():
            one()
            self.clock.timed(other)()
        return self.clock.now() - began, self.clock.seconds

    def _pass(self, name: str) -> None:
        self.outputs[name] = self.model(**self.inputs)[0]

    def _hidden_states(self) -> None:
        given = self.model(**self.inputs, output_hidden_states=True)
        found = given["encoder_hidden_states" if self.form.family == "bart" else "hidden_states"]
        self._answer(found)
        self.outputs["hidden_states"] = given[0]

    def _second_model(self) -> None:
        """Answer one task from a base model of its own, after the pass of the first."""
        self._pass("second_model")
        inner = self.second.get_encoder() if self.form.family == "bart" else self.second
        mask = {name: self.inputs[name] for name in ("input_ids", "attention_mask")}
        self._answer(inner(**mask, output_hidden_states=True)["hidden_states"])

    def _answer(self, found: Any) -> None:
        lengths = torch.full((self.form.batch,), self.form.time)
        self.task({s: found[s.number].flatten(0, 1) for s in self.task.live()}, lengths)


def measured(
    form: Form, counts: list[int], repeats: int, others: bool = True
) -> tuple[dict[str, float], bool]:
    """Return the keys of a shape, and whether the base model's output stayed the same."""
    rivals = Rivals(form, counts, others)
    tensor = form.batch * form.time * K * 4
    found: dict[str, float] = {}
    timed = {name: getattr(recorder.PassRecorder, name) for name in ("_begin", "_record", "_end")}
    for name, function in timed.items():
        setattr(recorder.PassRecorder, name, _method(rivals.clock, function))
    try:
        peaks = {}
        rivals.run("base")  # a GPU's libraries take their workspace in the first pass
        for name in rivals.names():  # also what warms up
            peaks[name] = rivals.peak(name)
            logger.info(f"{form.name}, {name}: peak {peaks[name] / 1e6:.5g} MB")
        same = _alike(rivals)
        shares: dict[str, list[float]] = {name: [] for name in rivals.names() if name.isdigit()}
        for _ in range(repeats):
            for name, found_shares in shares.items():
                whole, own = rivals.run(name)
                found_shares.append(own / (whole - own))
                logger.info(f"{form.name}, {name}: {whole:.4g} s, of them {own:.3g} s in hooks and heads")
    finally:
        for name, function in timed.items():
            setattr(recorder.PassRecorder, name, function)
    # Without the clock in every hook, which makes a GPU wait.
    seconds: dict[str, list[float]] = {name: [] for name in rivals.names()}
    for _ in range(repeats):
        for name, of in seconds.items():
            of.append(rivals.run(name)[0])
    median = {name: float(np.median(of)) for name, of in seconds.items()}
    same = same and _alike(rivals)
    for name in rivals.names()[1:]:
        extra, n = peaks[name] - peaks["base"], int(name) if name.isdigit() else 1
        found[f"stream_{name}_bytes_over_tensors_{form.name}"] = extra / (n * tensor)
        ratio = median[name] / median["base"]
        if name.isdigit():
            found[f"stream_{name}_over_base_{form.name}"] = 1 + float(np.median(shares[name]))
            found[f"stream_{name}_over_base_interleaved_{form.name}"] = ratio
        else:
            found[f"stream_{name}_over_base_{form.name}"] = ratio
    logger.info(
        f"{form.name}: a pass of the base model {median['base']:.3g} s, its peak {peaks['base'] / 1e6:.4g} MB, "
        f"a tensor of F {tensor / 1e6:.4g} MB"
    )
    return found, same


def _alike(rivals: Rivals) -> bool:
    """Return whether the base model gave the same with each of the rivals next to it."""
    return all(torch.equal(output, rivals.outputs["base"]) for output in rivals.outputs.values())


def _method(clock: Clock, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that does what `function` does, on the clock."""
    timed = clock.timed(function)

    def run(self: Any, *given: Any, **named: Any) -> Any:
        return timed(self, *given, **named)

    return run


SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "roberta_large": ("roberta", {"layers": 24, "width": 1024, "heads": 16}),
    "bart_large": ("bart", {"layers": 12, "width": 1024, "heads": 16}),
    "minilm": ("bert", {"layers": 6, "width": 384, "heads": 12}),
}
"""Name -> family and size of its encoder; the first two are measured unless --shapes says otherwise."""


def main() -> None:
    log_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.streaming")
    parser.add_argument("--small", action="store_true", help="tiny shapes, to see that it works")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES)[:2], choices=SHAPES, metavar="SHAPE")
    parser.add_argument("--tasks", nargs="+", type=int, default=[1, 2, 4, 8], metavar="N")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batch", type=int, help="sequences of a pass")
    parser.add_argument(
        "--alone", action="store_true", help="without the two rivals, which take most of the time"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    small = {"layers": 3, "width": 512, "heads": 8}
    batch, length = (2, 160) if arguments.small else (64 if device.type == "cuda" else 8, 512)
    found: dict[str, Any] = {}
    same = True
    for name in arguments.shapes:
        family, shaped = SHAPES[name]
        form = Form(
            name=name,
            family=family,
            batch=arguments.batch or batch,
            time=length,
            device=device,
            **(small if arguments.small else shaped),
        )
        keys, identical = measured(form, arguments.tasks, arguments.repeats, not arguments.alone)
        found, same = (
            {**found, **{key: float(f"{value:.4g}") for key, value in keys.items()}},
            same and identical,
        )
    found["stream_bytes_over_tensor"] = max(
        value for key, value in found.items() if "_bytes_" in key and key.split("_")[1].isdigit()
    )
    found["base_output_identical"] = same
    width = max(map(len, found))
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, {torch.get_num_threads()} threads, {device}\n")
    for key, value in found.items():
        print(f"{key:{width}}  {value}")
    print()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
