"""Labelled datasets as tasks: columns, splits, scores."""
