"""What is computed from evaluated units for people: tidy scores, worst intervals, groups."""
