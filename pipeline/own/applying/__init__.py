"""The program `apply`: calibrate new points, and write the person's file again with them.

Read `new_points` first, which is the program. `deployed` has the calibrator: fitted, loaded,
applied. `whole_rows` reads the rows with every cell as it is, and `rewritten` writes them again.
"""
