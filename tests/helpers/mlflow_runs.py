"""The runs of a study in MLflow, as a client reads them."""

from typing import Any


def client_of(uri: str) -> Any:
    """Return MLflow's client of a tracking URI."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def runs(uri: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the one parent run, trial id -> its run, below the parent or its arm's, and arm -> its run."""
    client = client_of(uri)
    found = client.search_runs([client.get_experiment_by_name("alpha_lambda").experiment_id])
    (parent,) = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    arms = {run.data.tags["arm"]: run for run in found if run.data.tags["adalayers.kind"] == "arm"}
    trials = [run for run in found if run.data.tags["adalayers.kind"] == "trial"]
    for run in (*trials, *arms.values()):
        above = arms[run.data.tags["arm"]] if run.data.tags.get("stage") == "confirm" else parent
        assert run.data.tags["mlflow.parentRunId"] == above.info.run_id
    nested = {run.data.tags["adalayers.trial_id"]: run for run in trials}
    assert len(nested) == len(trials), "a trial has two runs"
    return parent, nested, arms
