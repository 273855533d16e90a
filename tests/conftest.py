"""Settings that all tests share."""

import os

# Tiny tensors: more threads only wait for each other, and Ray's workers would fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# What the user's own environment says must not reach the tests.
for name in ("MLFLOW_TRACKING_URI", "ADALAYERS_CACHE", "HF_ENDPOINT"):
    os.environ.pop(name, None)
