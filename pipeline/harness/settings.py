"""The composed configuration with types: each group of conf/ is a class, whose files say more.

What goes to a calibrator, a source or a metric stays a dictionary: its keys are their arguments.
"""

from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

Target = dict[str, Any]  # a `_target_` and its arguments
if TYPE_CHECKING:
    Place = Path
else:  # Hydra prints a Path as the Python object that it is, and a text as a text
    Place = str


class Tables(Enum):
    """How tables look: with our intervals and tests, or as the paper prints them."""

    default = "default"
    paper = "paper"


@dataclass
class Paths:
    """Folders, and whether ready-made logits must be those of the benchmark."""

    data: Place = MISSING
    results: Place = MISSING
    precomputed: Place | None = None
    check_precomputed: bool = True

    def __post_init__(self) -> None:
        """Make paths of the texts, in which `~` is the home folder."""
        self.data, self.results = Path(self.data).expanduser(), Path(self.results).expanduser()
        if self.precomputed is not None:
            self.precomputed = Path(self.precomputed).expanduser()


@dataclass
class Sources:
    """Where the data of the paper's sources lie, and the device of forward passes."""

    imagenet: str = MISSING
    word_vectors: str | None = None
    yahoo_model: str = MISSING
    yahoo_data: str = MISSING
    checkpoints: str | None = None
    real: str = MISSING
    sentence_encoder: str = MISSING
    device: str = MISSING


@dataclass
class Benchmark:
    """A source of logits, and what its tables show (conf/benchmark/_base.yaml)."""

    name: str = MISSING
    title: str = MISSING
    source: Any = MISSING
    points: int | None = None
    rows: int | None = None
    similarity: Any = None
    published_accuracy: float | None = None
    precomputed: str | None = None
    paper_key: str | None = None
    metrics: list[str] | None = None


@dataclass
class Splits:
    """How many random splits, the share that calibrates, and their seed."""

    count: int = MISSING
    calibration_fraction: float = MISSING
    seed: int = MISSING


DEFAULT_EVALUATION = "default"
"""The evaluation whose name is not part of the names of files."""


def suffix_of(evaluation: str) -> str:
    """The part of a file's name that says which evaluation made it."""
    return "" if evaluation == DEFAULT_EVALUATION else f"-{evaluation}"


NAMING_FILES = ("name", "suffix", "suffixes")
"""The settings of an evaluation that change no score."""


@dataclass
class Evaluation:
    """The options of a scorecard, and the name of their results (conf/evaluation)."""

    name: str = MISSING
    suffix: str = MISSING  # `suffix_of` the name; DVC, too, composes it in conf/evaluation
    suffixes: dict[str, str] = field(default_factory=dict)  # those that are not -<name>
    utilities: int = MISSING
    floor_utilities: int = MISSING
    bootstrap_utilities: int = MISSING
    utility_seed: int = MISSING
    prior: str = "uniform"
    bins: int = MISSING
    class_weights: str = MISSING
    utility_batch: int | None = None
    floor_repetitions: int = MISSING
    bootstrap_repetitions: int = MISSING
    noise_seed: int = MISSING
    own: Any = MISSING

    def measured(self) -> dict[str, Any]:
        """What is measured, and how: all settings except those that only name files."""
        return {key: value for key, value in asdict(self).items() if key not in NAMING_FILES}


@dataclass
class Dynamics:
    """The appendix study of aligned and misaligned users (conf/dynamics)."""

    name: str = MISSING
    families: list[str] = MISSING
    splits: int = MISSING
    iterations: int = MISSING
    utilities: int = MISSING
    snapshots: list[int] = MISSING
    aligned: Any = MISSING
    misaligned: Any = MISSING
    step_size: float = MISSING
    line_search: Any = MISSING
    floor_draws: int = MISSING
    seed: int = MISSING


@dataclass
class Users:
    """The two studies of users: the utility-risk gap, and other priors (conf/users)."""

    name: str = MISSING
    risk_splits: int = MISSING
    shortlists: int = MISSING
    sampled: int = MISSING
    risk_floor_draws: int = MISSING
    priors: list[str] = MISSING
    prior_splits: int = MISSING
    utilities: int = MISSING
    prior_floor_draws: int = MISSING
    seed: int = MISSING


@dataclass
class Suite:
    """Names of benchmarks and calibrators."""

    name: str = MISSING
    benchmarks: list[str] = MISSING
    calibrators: list[str] = MISSING
    dynamics: list[str] = MISSING  # the benchmarks of the appendix study
    users: list[str] = MISSING  # those of the studies of users
    skip_absent: bool = False  # leave out benchmarks that have no logits, and name them


@dataclass
class Settings:
    """A configuration composed for one benchmark and one calibrator."""

    paths: Paths = field(default_factory=Paths)
    sources: Sources = field(default_factory=Sources)
    benchmark: Benchmark = field(default_factory=Benchmark)
    calibrator: Any = None
    each: Any = None  # several calibrators by name, which Request.units composes at once
    suite: Suite = field(default_factory=Suite)
    splits: Splits = field(default_factory=Splits)
    evaluation: Evaluation = field(default_factory=Evaluation)
    dynamics: Dynamics = field(default_factory=Dynamics)
    users: Users = field(default_factory=Users)
    tuning: Any = MISSING
    split: int | None = None
    seed: int = MISSING
    jobs: Any = MISSING
    tables: Tables = MISSING
    objective: str | None = None
    force: bool = MISSING
    params: str | None = None


ConfigStore.instance().store("settings", Settings, group="schema", package="_global_")
