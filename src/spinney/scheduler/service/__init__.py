"""The thin loop around the core: feeds it from watches, asks for a plan, carries the plan out."""
