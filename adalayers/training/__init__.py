"""Training of one trial: no Ray, no MLflow."""
