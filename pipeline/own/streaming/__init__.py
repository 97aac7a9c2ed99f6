"""The program behind `score --stream`: one pass over points beyond memory.

Read `stream` first, which is the program. `shards` finds out whether a part of the points has
changed, or occurs twice. `sums` is what a pass keeps of some shards; sums of parts are merged.
"""
