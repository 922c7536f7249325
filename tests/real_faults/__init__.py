"""Faults on the real API server: every process is killed, disks are slow and full; the rules are the simulator's."""
