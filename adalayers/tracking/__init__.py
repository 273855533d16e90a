"""MLflow, alone: a mirror of results folders."""
