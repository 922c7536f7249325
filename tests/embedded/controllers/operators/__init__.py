"""Tests of stand-in operators."""
