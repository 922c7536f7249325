"""Reservation pods, which hold a GPU that other pods share."""
