"""Parts of `scripts/compare_speed.py`: inputs, peers, cases, measuring, reports."""
