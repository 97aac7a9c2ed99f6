"""Bytes become named columns or named arrays; nothing is decided here about what they mean.

Read `read` first, the one door for a whole file, and `parts` for some rows of it at a time.
`tables` opens each kind of table, whole or by parts. `text_tables` does it for CSV and TSV, with
the decimal sign from `decimals` and names that look like numbers from `spelling`. `table_memory`
says how much memory a table takes before it is read. `cells` has what all later rooms ask of the
cells: text, numbers and labels.
"""
