"""Pooled scaling: a temperature, a map with shape and rank, and the same with a matrix."""
