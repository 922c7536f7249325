"""Examine a cluster: what is installed, what answers, what is missing, and what to do about it."""
