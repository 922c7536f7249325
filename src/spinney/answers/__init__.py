"""Answers about a cluster: pure functions from what was read of it to typed data that CLI and dashboard share."""
