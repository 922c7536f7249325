"""Fault search: run a scenario with crashes, delays and lost answers, and compare it with a clean run."""
