"""How much the benchmarks measure: as published in docs/performance.md, or little, to see that all of them run."""

from dataclasses import dataclass

BATCH = 64


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured.

    cola:      how many of CoLA's lengths, None: all of them; sample: how many for what takes longer
    large:     layers, width, heads, feed-forward width and vocabulary of the large backbone
    levels:    how many levels of what is varied (lengths, methods, seeds, ...), None: all of them
    repeats:   how often a rival takes its turn; steps: the same of a single training step
    trials:    of a study, and seconds: how long about each of them takes
    sentences: that token trials train on; examples: that groups of arms are trained on
    """

    cola: int | None = None
    sample: int = 512
    large: tuple[int, int, int, int, int] = (24, 1024, 16, 4096, 50265)
    levels: int | None = None
    repeats: int = 5
    steps: int = 40
    trials: int = 32
    seconds: float = 5.0
    sentences: int = 2000
    examples: int = 800


FULL = Sizes()
TINY = Sizes(
    cola=64,
    sample=32,
    large=(2, 64, 4, 128, 21000),
    levels=1,
    repeats=1,
    steps=1,
    trials=2,
    seconds=0.1,
    sentences=64,
    examples=64,
)
