"""From the files of the runs to tables, figures and the comparison with the paper."""
