"""The three places that pin versions agree, and nothing in them belongs to one machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


def lock() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): version for name, version in pins}


def declared() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["dev"]]


def test_every_declared_pin_stands_in_the_lock_with_the_same_version() -> None:
    pins = lock()
    for requirement in declared():
        name, version = requirement.split("==")
        assert pins[name.lower().replace("_", "-")] == version, requirement


def test_environment_yml_repeats_the_pins_of_pyproject() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert sorted(pip) == sorted(declared())


def test_no_pin_carries_a_local_label_a_path_or_an_address() -> None:
    for file in ("requirements.lock", "pyproject.toml", "environment.yml"):
        text = (ROOT / file).read_text()
        assert not re.search(r"==[^\"\s]*\+|file:|://|--index|--find-links", text), file
