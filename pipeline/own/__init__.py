"""The parts of scripts/score.py and scripts/apply.py, which take files of a user's classifier."""
