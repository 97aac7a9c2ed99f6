"""Minimisers that several calibrators share."""
