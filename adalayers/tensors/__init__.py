"""Quick arithmetic for CPUs: the mix, attention and dropout."""
