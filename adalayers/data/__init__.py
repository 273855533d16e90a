"""What a trial reads: a task's splits joined with hidden states."""
