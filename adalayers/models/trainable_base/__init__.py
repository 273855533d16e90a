"""Models that change a copy of the base model: adapters in its layers, or all of them trained."""
