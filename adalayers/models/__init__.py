"""What a trial trains: a fusion and a head."""
