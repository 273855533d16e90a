"""Frozen transformers: found, loaded, tokenised, read."""
