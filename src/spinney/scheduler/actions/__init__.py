"""The actions of a cycle: allocate, consolidation, reclaim, preempt, stale gang eviction, and reservations."""
