"""Parts of `scripts/compare_speed.py`: inputs, references, peers, cases, measuring, reports."""
