"""What the stages compute: splits, fits, scores, worst intervals, groups, and their text files."""
