"""Write docs/tutorial.ipynb: the tutorial with what its code prints and draws, for Jupyter.

    python docs/studies/notebook.py [docs/tutorial.ipynb]

The code runs here. So the notebook shows what this version of the package computes.
"""

import contextlib
import os
import re
import sys
import tempfile
from base64 import b64encode
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_output

from utility_calibration.metrics.atomic import atomic_path

DOCS = Path(__file__).resolve().parents[1]
PICTURE = re.compile(r"!\[[^\]]*\]\((figures/[^)]+)\)")
OUTPUT = re.compile(r"```text\n.*?```\n*", re.DOTALL)


def executed(page: Path) -> nbformat.NotebookNode:
    """The page as a notebook whose cells have run, with their outputs in place of the page's."""
    text = page.read_text(encoding="utf-8").replace(".md)", ".html)")
    notebook = jupytext.reads(text, fmt="md")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    names: dict[str, object] = {"__name__": "__main__"}
    code: nbformat.NotebookNode | None = None
    cells = []
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # else it would be drawn anew each time
        if cell.cell_type == "code":
            code = cell
            code.outputs = _outputs_of(cell.source, names)
        elif code is not None:
            # What the page shows of the code above it, a notebook shows as the cell's output.
            code.outputs += [_image(path) for path in PICTURE.findall(cell.source)]
            cell.source = OUTPUT.sub("", PICTURE.sub("", cell.source), count=1).strip()
        if cell.source:
            cells.append(cell)
    notebook.cells = cells
    return notebook


def _outputs_of(code: str, names: dict[str, object]) -> list[nbformat.NotebookNode]:
    """Run a cell; what it prints."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        with contextlib.redirect_stdout(file):
            exec(compile(code, "tutorial", "exec"), names)
        file.seek(0)
        printed = file.read()
    return [new_output("stream", name="stdout", text=printed)] if printed else []


def _image(path: str) -> nbformat.NotebookNode:
    """The picture that the cell has just drawn."""
    data = {"image/png": b64encode(Path(path).read_bytes()).decode()}
    return new_output("display_data", data=data)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else DOCS / "tutorial.ipynb").resolve()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "figures").mkdir()
        os.chdir(folder)  # the tutorial writes its files where it runs
        notebook = executed(DOCS / "tutorial.md")
    with atomic_path(target) as path:
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
