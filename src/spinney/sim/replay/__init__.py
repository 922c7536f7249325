"""Replay of traces, snapshots and recorded histories under several policies."""
