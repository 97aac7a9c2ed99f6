"""The cases of `scripts/compare_speed.py`."""
