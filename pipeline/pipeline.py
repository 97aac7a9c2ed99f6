"""What `python pipeline/fit.py` finds in the place of the package: it says how to start a stage."""

import sys

if __name__ == "pipeline":
    sys.exit("error: start a stage by its module, in the project's folder: python -m pipeline.fit")
