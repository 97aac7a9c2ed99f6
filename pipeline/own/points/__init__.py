"""The labelled points of whole files or of parts of them, checked.

Read `whole_file` first: it joins a file, or two of them, and asks `columns` for the layout.
`by_parts` does the same some rows at a time, for files beyond memory. `check` then checks all
points: by the table of refusals in `point_rules`, with the notes of `point_notes` on what is odd,
though it may be meant, and those of `copies` on rows that are equal.
"""
