"""Trained tasks next to a running base model: on its own passes, saved and shared, asked from the command line."""
