"""Parts of `scripts/compare_speed.py`: its inputs and its cases."""
