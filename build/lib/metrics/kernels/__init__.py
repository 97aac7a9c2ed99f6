"""Fast primitives below the definitions; each file holds its CPU and its torch version."""
