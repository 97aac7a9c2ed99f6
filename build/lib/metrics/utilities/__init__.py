"""Utility classes of the paper: who uses the forecast, and what they gain."""
