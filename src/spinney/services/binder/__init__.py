"""The binder: carries out the scheduler's decisions, and tells truthfully how that went."""
