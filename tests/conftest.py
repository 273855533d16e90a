"""Settings that all tests share."""

import os

# Tiny tensors: more threads only wait for each other, and Ray's workers would fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
