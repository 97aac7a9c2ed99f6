"""A person's own classifier: what scripts/score.py and scripts/apply.py do with its file."""
