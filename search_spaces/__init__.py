"""Search spaces as data: domains of `ray.tune`, one space per file, named as the study that uses it."""
