"""Fast primitives below the definitions, on NumPy arrays."""
