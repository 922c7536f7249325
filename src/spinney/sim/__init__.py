"""Virtual time, and what is built on it."""
