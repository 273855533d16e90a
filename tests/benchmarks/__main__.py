"""python -m tests.benchmarks [NAME ...] [--tiny]: what the feature store, the head and a study cost.

Prints a table and, as the last line, one JSON object. Ratios are of medians of repeats that took turns.
"""

import argparse
import contextlib
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from adalayers.backbones.sources import BackboneSource
from adalayers.console.progress import log_to_stderr
from adalayers.features.features import LiveFeatures
from adalayers.tuning.session import ray_session
from tests.benchmarks import gpu, groups, made, memory, methods, operations, streaming, study, training
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import logger, report
from tests.benchmarks.sizes import BATCH, FULL, TINY, Sizes

Measured = dict[str, float]
Benchmark = Callable[[Path, Sizes], Measured]


BASES: dict[str, Callable[[Path, Sizes], BackboneSource]] = {
    "minilm": lambda root, sizes: made.minilm(),
    "roberta_large": made.large,
}


def ratio(key: str, above: str, below: str, times: Benchmark) -> Benchmark:
    """Return the benchmark that is the ratio of two of the times that `times` measures."""

    def measure(root: Path, sizes: Sizes) -> Measured:
        seconds = times(root, sizes)
        logger.info(f"{key}: {above} {seconds[above]:.4g} s, {below} {seconds[below]:.4g} s")
        return {key: seconds[above] / seconds[below]}

    return measure


def epoch(name: str, root: Path, sizes: Sizes) -> Measured:
    lengths = cola_lengths(sizes.cola if name == "minilm" else sizes.sample)
    return training.epochs(root, BASES[name](root, sizes), lengths, sizes.repeats)


def group(name: str, root: Path, sizes: Sizes) -> Measured:
    lengths = cola_lengths(min(sizes.sample, groups.EXAMPLES))
    return groups.live(BASES[name](root, sizes), lengths, min(3, sizes.repeats))


def extract(root: Path, sizes: Sizes) -> Measured:
    encoded = made.encoded(cola_lengths(sizes.cola))
    return training.extraction(root, {"minilm": made.minilm()}, encoded, min(3, sizes.repeats))


def step(layers: int, width: int, root: Path, sizes: Sizes) -> Measured:
    # A batch as training sees it: of like lengths, here those around the median.
    lengths = np.sort(cola_lengths())[len(cola_lengths()) // 2 :][:BATCH]
    return training.head_step(layers, width, lengths, sizes.steps)


def method_steps(root: Path, sizes: Sizes) -> Measured:
    return methods.step_ratios(root, made.minilm(), cola_lengths(sizes.sample), sizes.repeats)


def resident(root: Path, sizes: Sizes) -> Measured:
    source, lengths = made.large(root, sizes), cola_lengths(sizes.sample)
    features = {
        "stored": training.store(root, source, made.encoded(lengths)),
        # A live epoch is long, its memory is soon known.
        "live": LiveFeatures(source, made.encoded(lengths[: 2 * BATCH])),
    }
    return {
        f"resident_mb_{name}": memory.in_new_process(memory.training_mb, source, features[name])
        for name in ("stored", "live")
    }


def resident_tokens(root: Path, sizes: Sizes) -> Measured:
    most = study.resident_tokens(root, sizes)
    grown = most[-1] - most[min(study.GROWN_FROM, len(most)) - 1]
    logger.info(
        f"memory of {len(most)} token trials in one worker: {', '.join(f'{mb:.0f}' for mb in most)} MB"
    )
    return {"resident_mb_tokens": max(most), "resident_mb_tokens_growth": grown}


def loading(root: Path, sizes: Sizes) -> Measured:
    source = made.large(root, sizes)
    return {
        f"loading_over_weights_{dtype}": memory.in_new_process(memory.loading_over_weights, source, dtype)
        for dtype in ("float32", "bfloat16")
    }


OF_BASES = {
    "epoch": ("epoch_live_over_stored", "live", "stored", epoch),
    "group": ("group15_live_over_one_live", "group", "one", group),
}
BENCHMARKS: dict[str, Benchmark] = {
    **{
        f"{what}_{name}": ratio(f"{key}_{name}", above, below, partial(times, name))
        for what, (key, above, below, times) in OF_BASES.items()
        for name in BASES
    },
    "extract": ratio("extract_over_forward", "extract minilm", "forward minilm", extract),
    "step": ratio("step_over_matmul", "step", "products", partial(step, 24, 1024)),
    "step_minilm": ratio("step_over_matmul_minilm", "step", "products", partial(step, 6, 384)),
    "study": ratio("study_over_training", "wall", "training", study.study_over_training),
    "study_grouped": ratio(
        "study_grouped_over_ungrouped", "grouped", "ungrouped", study.grouped_over_ungrouped
    ),
    "operations": operations.operations,
    "methods": method_steps,
    "methods_memory": methods.memory_mb,
    "resident": resident,
    "resident_tokens": resident_tokens,
    "loading": loading,
}
"""What `make bench` runs."""
LONG: dict[str, Benchmark] = {
    "streaming": streaming.all_shapes,
}
ON_GPU: dict[str, Benchmark] = {
    **{f"gpu_{name}": partial(gpu.shape_ratios, name, base) for name, base in BASES.items()},
    "gpu_steps": gpu.step_table,
}


def main() -> None:
    every = BENCHMARKS | LONG | ON_GPU
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*every, []],
        metavar="NAME",
        help=f"{', '.join(every)} (default: the first {len(BENCHMARKS)})",
    )
    parser.add_argument(
        "--tiny", action="store_true", help="every benchmark on little data, to see that it runs"
    )
    flags = parser.parse_args()
    log_to_stderr()
    torch.set_num_threads(2)
    tiny = [*BENCHMARKS, *LONG, *(ON_GPU if torch.cuda.is_available() else ())]
    measured: Measured = {}
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="adalayers-bench-"))
        if flags.tiny:
            stack.enter_context(ray_session(None))  # one for all studies: each start takes seconds
        for name in flags.names or (tiny if flags.tiny else BENCHMARKS):
            logger.info(f"benchmark {name}")
            measured |= every[name](Path(root), TINY if flags.tiny else FULL)
    report(measured)


if __name__ == "__main__":
    main()
