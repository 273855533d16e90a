"""Hidden states, stored or computed when read."""
