"""`make repro`: check what the user gave, then call DVC. Other settings than those of params.yaml:

make repro SUITE=paper IMAGENET=/folder WORD_VECTORS=/file YAHOO_MODEL=/folder YAHOO_DATA=/file

Each variable may stand in the environment, too. `--check` only checks, before the set-up: it needs
Python's standard library alone.
"""

import os
import re
import sys
from pathlib import Path

from pipeline.harness.machine import links

PLACES = {
    "PRECOMPUTED": ("precomputed", "folder"),
    "IMAGENET": ("sources.imagenet", "folder"),
    "CHECKPOINTS": ("sources.checkpoints", "folder"),
    "WORD_VECTORS": ("sources.word_vectors", "file"),
    "YAHOO_MODEL": ("sources.yahoo_model", "file, folder or owner/name"),
    "YAHOO_DATA": ("sources.yahoo_data", "file, folder or owner/name"),
}
"""For each variable the setting, and what it names: something here or on the Hugging Face hub."""
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
BY_HAND = ("extended", "extended_1000", "cifar_closest")
STAGES = ("logits", "fit", "evaluate", "dynamics", "report")


def mistakes(environment: dict[str, str]) -> list[str]:
    """What is wrong with the variables, with the disk, or with the project's folder."""
    found, suite = [], environment.get("SUITE", "")
    suites = sorted(path.stem for path in Path("conf/suite").glob("*.yaml"))
    if suite in BY_HAND:
        found.append(f"SUITE={suite}: run its stages by hand; conf/suite/{suite}.yaml says how")
    elif suite and suite not in suites:
        found.append(f"SUITE={suite}: no such suite; choose one of: {' '.join(suites)}")
    for name, (_, kind) in PLACES.items():
        text = environment.get(name, "")
        path = Path(text).expanduser()
        is_there = path.is_dir() if kind == "folder" else path.exists()
        if text and not is_there and not ("owner" in kind and HUB_NAME.fullmatch(text)):
            found.append(f"{name}={text}: no such {kind}; correct or unset it")
    device = environment.get("DEVICE") or "auto"
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        found.append(f"DEVICE={device}: expected auto, cpu, cuda or cuda:<k>")
    if not Path(".git").exists():
        stages = " && ".join(f"python -m pipeline.{s} suite={suite or 'digits'}" for s in STAGES)
        found.append(
            "this folder has no .git, which DVC needs (a downloaded zip has none): clone the "
            "project, or run 'git init', or 'make setup' and then the stages by hand: "
            f"source .venv/bin/activate && {stages}"
        )
    return found + links()


def dvc_command(environment: dict[str, str]) -> list[str]:
    """`dvc repro` of params.yaml as it is, or `dvc exp run` with the given settings."""
    from pipeline.harness.parameters import quoted

    chosen = [f"suite={environment['SUITE']}"] if environment.get("SUITE") else []
    for variable, (key, _) in {**PLACES, "DEVICE": ("sources.device", "")}.items():
        if given := environment.get(variable):
            chosen.append(f"{key}={quoted(Path(given).expanduser())}")
    words = ["exp", "run", *(word for text in chosen for word in ("-S", text))]
    return [sys.executable, "-m", "dvc", *(words if chosen else ["repro"])]


if __name__ == "__main__":
    if found := mistakes(dict(os.environ)):
        print("\n".join(f"error: {line}" for line in found), file=sys.stderr)
        sys.exit(2)
    if sys.argv[1:] != ["--check"]:
        command = dvc_command(dict(os.environ))
        os.execv(command[0], command)
