"""Which column is which class, and on which scale: a `Layout`, decided once and then applied.

Read `layout_from_rows` first: it decides from labelled rows. `classes_by_name` matches a table's
columns with classes by patterns, and `column_errors` says why that fails; `classes_by_place` goes
by position where no name says it. `single_column` and `confidence` treat one column for two
classes; `classes_of_calibrator` treats points without labels, whose classes a saved calibrator
has. `layout` applies what was decided: `answers` is what it takes from the rows, `scale` makes
them logits by the table of refusals in `rules`, and `file_points` is what it returns.
"""
