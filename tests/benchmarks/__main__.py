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
from tests.benchmarks import (
    driver,
    gpu,
    groups,
    made,
    methods,
    operations,
    precision,
    streaming,
    study,
    training,
)
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import logger, report
from tests.benchmarks.memory import in_new_process
from tests.benchmarks.resident import loading_over_weights, training_mb
from tests.benchmarks.sizes import BATCH, FULL, TINY, Sizes

Measured = dict[str, float]


BASES: dict[str, Callable[[Path, Sizes], BackboneSource]] = {
    "minilm": lambda root, sizes: made.minilm(),
    "roberta_large": made.large,
}


def epoch(name: str, root: Path, sizes: Sizes) -> Measured:
    lengths = cola_lengths(sizes.cola if name == "minilm" else sizes.sample)
    seconds = training.epochs(root, BASES[name](root, sizes), lengths, sizes.repeats)
    return {f"epoch_live_over_stored_{name}": _ratio(f"epoch, {name}, CoLA", seconds, "live", "stored")}


def group(name: str, root: Path, sizes: Sizes) -> Measured:
    lengths = cola_lengths(min(sizes.sample, groups.EXAMPLES))
    seconds = groups.live(BASES[name](root, sizes), lengths, min(3, sizes.repeats))
    ratio = _ratio(f"live epoch, {name}, 15 arms", seconds, "group", "one")
    return {f"group15_live_over_one_live_{name}": ratio}


def extract(root: Path, sizes: Sizes) -> Measured:
    encoded = made.encoded(cola_lengths(sizes.cola))
    seconds = training.extraction(root, {"minilm": made.minilm()}, encoded, min(3, sizes.repeats))
    return {"extract_over_forward": _ratio("CoLA", seconds, "extract minilm", "forward minilm")}


def step(root: Path, sizes: Sizes) -> Measured:
    measured = {}
    for key, layers, width in (("step_over_matmul", 24, 1024), ("step_over_matmul_minilm", 6, 384)):
        # A batch as training sees it: of like lengths, here those around the median.
        lengths = np.sort(cola_lengths())[len(cola_lengths()) // 2 :][:BATCH]
        seconds = training.head_step(layers, width, lengths, sizes.steps)
        measured[key] = _ratio(f"step, {layers} layers of width {width}", seconds, "step", "products")
    return measured


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
        f"resident_mb_{name}": in_new_process(training_mb, source, features[name])
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
        f"loading_over_weights_{dtype}": in_new_process(loading_over_weights, source, dtype)
        for dtype in ("float32", "bfloat16")
    }


def study_time(root: Path, sizes: Sizes) -> Measured:
    seconds = study.study_over_training(root, sizes)
    return {"study_over_training": _ratio("a study", seconds, "wall", "training")}


def study_grouped(root: Path, sizes: Sizes) -> Measured:
    seconds = study.grouped_over_ungrouped(root, sizes)
    return {"study_grouped_over_ungrouped": _ratio("a study of 15 arms", seconds, "grouped", "ungrouped")}


def _ratio(what: str, seconds: Measured, above: str, below: str) -> float:
    ratio = seconds[above] / seconds[below]
    logger.info(f"{what}: {above} {seconds[above]:.4g} s, {below} {seconds[below]:.4g} s, ratio {ratio:.3g}")
    return ratio


BENCHMARKS: dict[str, Callable[[Path, Sizes], Measured]] = {
    **{f"epoch_{name}": partial(epoch, name) for name in BASES},
    **{f"group_{name}": partial(group, name) for name in BASES},
    "extract": extract,
    "step": step,
    "operations": operations.operations,
    "methods": method_steps,
    "methods_memory": methods.memory_mb,
    "resident": resident,
    "resident_tokens": resident_tokens,
    "loading": loading,
    "study": study_time,
    "study_grouped": study_grouped,
}
"""What `make bench` runs."""
LONG: dict[str, Callable[[Path, Sizes], Measured]] = {
    "driver": driver.driver,
    "precision": precision.score_differences,
    "streaming": lambda root, sizes: streaming.all_shapes(
        counts=(1, 2, 4, 8)[: sizes.levels], repeats=min(3, sizes.repeats), small=sizes is TINY
    ),
}
ON_GPU: dict[str, Callable[[Path, Sizes], Measured]] = {
    **{f"gpu_{name}": partial(gpu.shape_ratios, name, base) for name, base in BASES.items()},
    "gpu_methods": gpu.method_ratios,
    "gpu_group": gpu.group_ratio,
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
        help=f"{', '.join(every)} (default: the first 14)",
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
