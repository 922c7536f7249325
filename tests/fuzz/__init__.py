"""Hostile inputs for everything that reads what others wrote: `make fuzz`, and a slice of it as a test."""
