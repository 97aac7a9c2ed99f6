"""The parts of a scorecard's records by key, for tests that look at all of them."""

from typing import Any

from utility_calibration.metrics import Scorecard


def parts_of(card: Scorecard, part: str) -> dict[str, Any]:
    """The `part` of each metric that has it."""
    return {key: getattr(card[key], part) for key in card if hasattr(card[key], part)}


def draws_of(card: Scorecard) -> dict[str, Any]:
    """The draws by kind and metric: floor_<key>, bootstrap_<key>."""
    kinds = ("floor", "bootstrap")
    of_kinds = {kind: parts_of(card, f"{kind}_draws") for kind in kinds}
    return {f"{kind}_{key}": drawn for kind in kinds for key, drawn in of_kinds[kind].items()}


def curves_of(card: Scorecard) -> dict[str, Any]:
    """The sampled users' errors and their floors by family and line."""
    lines = {family: curve._asdict() for family, curve in card.curves.items()}
    return {f"{family}_{name}": line for family in lines for name, line in lines[family].items()}


def content_of(card: Scorecard) -> dict[str, Any]:
    """Everything that a scorecard has, by name."""
    floors = {f"{key} floor": floor for key, floor in parts_of(card, "floor").items()}
    worst = {f"{key} worst": place for key, place in parts_of(card, "worst").items()}
    gains = {f"{key} gain": gain for key, gain in parts_of(card, "gain").items()}
    bounds = {f"{key} interval": part for key, part in parts_of(card, "interval").items()}
    others = {"interval": card.interval, "zero_likelihood": card.zero_likelihood}
    numbers = card.metrics | floors | worst | gains | bounds | others
    return numbers | draws_of(card) | curves_of(card)
