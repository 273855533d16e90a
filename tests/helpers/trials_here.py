"""Studies whose trials run in the test's own process: Ray's start and its workers take most of a tiny study's time."""

import contextlib
import functools
import itertools
import pickle
from types import SimpleNamespace
from unittest import mock

import jaxtyping
import ray
import torch
from ray import tune
from ray.tune.schedulers import TrialScheduler

from adalayers.tuning import run


def sent(value):
    """Return what arrives at a worker of what it is sent: arrays that nobody may write to."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return pickle.loads(rest, buffers=[memoryview(bytearray(each)).toreadonly() for each in arrays])


class Stopped(BaseException):
    """Ends a trial where its scheduler says so, as Tune does: no part of it takes that for an error."""


class Tuner:
    """Runs trials one after another, and tells searcher and scheduler of them what Tune tells of those that live."""

    def __init__(self, train, tune_config, run_config):
        self.train, self.searcher, self.interrupt = train, tune_config.search_alg, run_config.stop
        self.scheduler = tune_config.scheduler

    def fit(self):
        for name in map(str, itertools.count()):
            if self.interrupt.stop_all() or (config := self.searcher.suggest(name)) == self.searcher.FINISHED:
                return
            trial, last = SimpleNamespace(trial_id=name, config=config), {}
            report = mock.patch.object(tune, "report", functools.partial(self.hear, trial, last))
            with report, contextlib.suppress(Stopped):
                self.train(sent(config))
            self.searcher.on_trial_complete(name, last)

    def hear(self, trial, last, metrics):
        last.update(metrics)
        self.searcher.on_trial_result(trial.trial_id, metrics)
        if self.scheduler.on_trial_result(None, trial, metrics) == TrialScheduler.STOP:
            raise Stopped


HERE = {
    "ray_session": lambda address: contextlib.nullcontext(),
    "share": lambda results, data: None,
    "tune": SimpleNamespace(
        **dict.fromkeys(("TuneConfig", "RunConfig", "FailureConfig"), SimpleNamespace),
        Tuner=Tuner,
        with_parameters=functools.partial,
        with_resources=lambda train, each: train,
    ),
}
RAY = {"nodes": lambda: [{"Alive": True, "Resources": {"CPU": 1}}], "put": sent, "get": lambda given: given}


@contextlib.contextmanager
def trials_here():
    """Let trials run in this process, one at a time, without checks of types and shapes, which no worker makes."""
    unchecked = mock.patch.object(jaxtyping.config, "jaxtyping_disable", True)
    try:
        with unchecked, mock.patch.multiple(run, **HERE), mock.patch.multiple(ray, **RAY):
            yield
    finally:
        torch.set_flush_denormal(False)
