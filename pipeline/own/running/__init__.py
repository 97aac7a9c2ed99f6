"""The program `score`: the stages run on a person's file, and their results are written.

Read `run` first, which is the program. `size` refuses a file that does not fit into memory,
before anything is computed. `results` writes tables, figures, verdict and page.
"""
