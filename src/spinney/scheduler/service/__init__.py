"""The loop around the core: watch, plan, carry the plan out."""
