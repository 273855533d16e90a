"""python -m tests.benchmarks [NAME ...] [--scaling | --precision]: what the feature store, the head and a study cost.

Prints a table and, as the last line, one JSON object. Ratios are of medians of repeats that took turns.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from adalayers.console.progress import log_to_stderr
from tests.benchmarks import gpu, made, methods, training
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.precision import score_differences
from tests.benchmarks.resident import MODES
from tests.benchmarks.resident_tokens import GROWN_FROM, resident_tokens
from tests.benchmarks.scaling import scaling
from tests.benchmarks.study import study_over_training

logger = logging.getLogger("adalayers.benchmarks")

SEQUENCES = 512
"""Of CoLA, for RoBERTa-large's shape."""
BATCH = training.CONFIG.batch_size

Measured = dict[str, float]


class Bench:
    """The benchmarks by name; each returns its keys of the JSON object and says what it saw."""

    def __init__(self, root: Path):
        self.root = root
        self._large: made.BackboneSource | None = None

    @property
    def large(self) -> made.BackboneSource:
        if self._large is None:
            self._large = made.roberta_large(self.root)
        return self._large

    def epoch_minilm(self) -> Measured:
        seconds = training.epochs(self.root, made.minilm(), cola_lengths(), repeats=5)
        return {"epoch_live_over_stored_minilm": _ratio("epoch, MiniLM, CoLA", seconds, "live", "stored")}

    def epoch_roberta_large(self) -> Measured:
        seconds = training.epochs(self.root, self.large, cola_lengths(SEQUENCES), repeats=5)
        name = f"epoch, RoBERTa-large shape, {SEQUENCES} sequences"
        return {"epoch_live_over_stored_roberta_large": _ratio(name, seconds, "live", "stored")}

    def extract(self) -> Measured:
        seconds = training.extraction(self.root, made.minilm(), cola_lengths(), repeats=3)
        return {"extract_over_forward": _ratio("extraction, MiniLM, CoLA", seconds, "extract", "forward")}

    def step(self) -> Measured:
        measured = {}
        for key, layers, width in (("step_over_matmul", 24, 1024), ("step_over_matmul_minilm", 6, 384)):
            # A batch as training sees it: of like lengths, here those around the median.
            lengths = np.sort(cola_lengths())[len(cola_lengths()) // 2 :][:BATCH]
            seconds = training.head_step(layers, width, lengths, repeats=40)
            measured[key] = _ratio(
                f"head step, {layers} layers of width {width}", seconds, "step", "products"
            )
        return measured

    def methods(self) -> Measured:
        seconds = methods.epochs(self.root, made.minilm(), cola_lengths(SEQUENCES), repeats=5)
        return {
            methods.key(name): _ratio(f"a step of {name}, MiniLM", seconds, name, methods.CONTROL)
            for name in methods.rivals(seconds)
        }

    def methods_memory(self) -> Measured:
        n = 2 * BATCH
        training.store(self.root, self.large, made.encoded(cola_lengths(n)))
        return {
            f"memory_mb_{fusion.replace('-', '_')}_{how}": self._most(
                "tests.benchmarks.methods", fusion, how, str(self.large.folder), str(self.root), str(n)
            )
            for fusion, how in methods.configs()
        }

    def gpu_minilm(self) -> Measured:
        return gpu.of_shape(self.root, "minilm", made.minilm())

    def gpu_roberta_large(self) -> Measured:
        return gpu.of_shape(self.root, "roberta_large", self.large)

    def gpu_methods(self) -> Measured:
        return gpu.of_methods(self.root)

    def study(self) -> Measured:
        seconds = study_over_training(self.root)
        logger.info(
            f"study of 32 trials: {seconds['wall']:.1f} s, {seconds['trial']:.2f} s of training a trial"
        )
        return {"study_over_training": seconds["wall"] / seconds["training"]}

    def resident(self) -> Measured:
        training.store(self.root, self.large, made.encoded(cola_lengths(SEQUENCES)))
        return {f"resident_mb_{mode}": self._resident(mode) for mode in MODES}

    def resident_tokens(self) -> Measured:
        most = resident_tokens(self.root)
        grown = most[-1] - most[GROWN_FROM - 1]
        logger.info(
            f"memory of {len(most)} token trials in one worker: {most[0]:.0f} MB in the first, {max(most):.0f} MB at "
            f"most, {grown:+.0f} MB from the {GROWN_FROM}th to the last"
        )
        return {"resident_mb_tokens": max(most), "resident_mb_tokens_growth": grown}

    def loading(self) -> Measured:
        folder = str(self.large.folder)
        return {
            f"loading_over_weights_{dtype}": self._most("tests.benchmarks.loading", dtype, folder)
            for dtype in ("float32", "bfloat16")
        }

    def _resident(self, mode: str) -> float:
        n = str(
            SEQUENCES if mode == "stored" else 2 * BATCH
        )  # a live epoch is long, its memory is soon known
        return self._most("tests.benchmarks.resident", mode, str(self.large.folder), str(self.root), n)

    @staticmethod
    def _most(module: str, *arguments: str) -> float:
        """Return the last number that a module prints, run in a process of its own."""
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout.split()[-1])


def _ratio(what: str, seconds: Measured, above: str, below: str) -> float:
    ratio = seconds[above] / seconds[below]
    logger.info(f"{what}: {above} {seconds[above]:.4g} s, {below} {seconds[below]:.4g} s, ratio {ratio:.3g}")
    return ratio


def main() -> None:
    log_to_stderr()
    benchmarks = (
        "epoch_minilm",
        "epoch_roberta_large",
        "extract",
        "step",
        "methods",
        "methods_memory",
        "resident",
        "resident_tokens",
        "loading",
        "study",
    )
    on_gpu = ("gpu_minilm", "gpu_roberta_large", "gpu_methods")
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*benchmarks, *on_gpu, []],
        metavar="NAME",
        help=", ".join((*benchmarks, *on_gpu)),
    )
    parser.add_argument(
        "--scaling", action="store_true", help="how they grow with tokens, layers, k and trials instead"
    )
    parser.add_argument("--precision", action="store_true", help="what half precision does to scores instead")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory(prefix="adalayers-bench-") as root:
        if arguments.scaling:
            measured = scaling(Path(root))
        elif arguments.precision:
            measured = score_differences(Path(root))
        else:
            bench = Bench(Path(root))
            measured = {}
            for name in arguments.names or benchmarks:
                benchmark: Callable[[], Measured] = getattr(bench, name)
                measured |= benchmark()
    measured = {key: float(f"{value:.4g}") for key, value in measured.items()}
    width = max(len(key) for key in measured)
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    for key, value in measured.items():
        print(f"{key:{width}}  {value:10.4g}")
    print()
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
