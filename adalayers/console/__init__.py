"""What a person at the terminal reads and sends: progress lines and signals."""
