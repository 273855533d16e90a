"""python -m tests.benchmarks [NAME ...] [--tiny]: what the feature store, the head and a study cost.

Prints a table and, as the last line, one JSON object. Ratios are of medians of repeats that took turns.
"""

import argparse
import contextlib
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from adalayers.console.progress import log_to_stderr
from adalayers.tuning.session import ray_session
from tests.benchmarks import gpu, memory, operations, streaming, study, training
from tests.benchmarks.made import FULL, TINY, Sizes
from tests.benchmarks.measure import logger, report

Measured = dict[str, float]
Benchmark = Callable[[Path, Sizes], Measured]
BASES = ("minilm", "roberta_large")


def ratio(key: str, above: str, below: str, times: Benchmark) -> Benchmark:
    """Return the benchmark that is the ratio of two of the times that `times` measures."""

    def measure(root: Path, sizes: Sizes) -> Measured:
        seconds = times(root, sizes)
        logger.info(f"{key}: {above} {seconds[above]:.4g} s, {below} {seconds[below]:.4g} s")
        return {key: seconds[above] / seconds[below]}

    return measure


def of_bases(
    name: str, key: str, above: str, below: str, times: Callable[..., Measured]
) -> dict[str, Benchmark]:
    """Return such a benchmark for each base model."""
    return {f"{name}_{base}": ratio(f"{key}_{base}", above, below, partial(times, base)) for base in BASES}


BENCHMARKS: dict[str, Benchmark] = {
    **of_bases("epoch", "epoch_live_over_stored", "live", "stored", training.epochs),
    **of_bases("group", "group15_live_over_one_live", "group", "one", training.groups),
    "extract": ratio("extract_over_forward", "extract minilm", "forward minilm", training.extract),
    "step": ratio("step_over_matmul", "step", "products", partial(training.head_step, 24, 1024)),
    "step_minilm": ratio("step_over_matmul_minilm", "step", "products", partial(training.head_step, 6, 384)),
    "study": ratio("study_over_training", "wall", "training", study.study_over_training),
    "study_grouped": ratio(
        "study_grouped_over_ungrouped", "grouped", "ungrouped", study.grouped_over_ungrouped
    ),
    "operations": operations.operations,
    "methods": training.method_steps,
    "methods_memory": memory.methods,
    "resident": memory.resident,
    "resident_tokens": study.resident_tokens,
}
"""What `make bench` runs."""
LONG: dict[str, Benchmark] = {"streaming": streaming.all_shapes}
ON_GPU: dict[str, Benchmark] = {
    **{f"gpu_{base}": partial(gpu.shape_ratios, base) for base in BASES},
    "gpu_steps": gpu.step_table,
}


def main() -> None:
    every = BENCHMARKS | LONG | ON_GPU
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    about = f"{', '.join(every)} (default: the first {len(BENCHMARKS)})"
    parser.add_argument("names", nargs="*", choices=[*every, []], metavar="NAME", help=about)
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
            torch.set_num_threads(2)  # some set it
    report(measured)


if __name__ == "__main__":
    main()
