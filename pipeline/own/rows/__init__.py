"""Columns as they were read become rows that count: one row and one label for each point.

Read `prepared` first, which does it. `roles` and `splits` say which columns have another purpose
than answers: labels, groups, clusters, weights, calibration or test. `lists` makes arrays of
columns that hold lists or objects of JSON: `entries` reads one such cell, and `class_masses` adds
up the mass of each class where a row lists some candidates only, as logs of language models do.
"""
