"""Verbs that change workloads and queues, and say what they did."""
