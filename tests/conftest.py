"""Settings that all tests share."""

import atexit
import os
import shutil
import tempfile

# Tiny tensors: more threads only wait for each other, and Ray's workers would fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# What the user's own environment says must not reach the tests.
for name in ("MLFLOW_TRACKING_URI", "ADALAYERS_CACHE", "HF_ENDPOINT"):
    os.environ.pop(name, None)
# Ray's workers inherit it too: no test writes to the user's cache.
os.environ["ADALAYERS_CACHE"] = tempfile.mkdtemp(prefix="adalayers-tests-")
atexit.register(shutil.rmtree, os.environ["ADALAYERS_CACHE"], ignore_errors=True)
