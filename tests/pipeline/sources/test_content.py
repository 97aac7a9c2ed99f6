"""Keys of logits hold what files are, not where they lie; the command line says where."""

import shutil

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from tests.pipeline.conftest import request_of
from utility_calibration.pipeline.harness import parameters
from utility_calibration.pipeline.harness.parameters import UsageError, expanded, place, quoted
from utility_calibration.pipeline.logits import logits_task
from utility_calibration.pipeline.sources.content import inputs_of


def settings_of(*overrides):
    return request_of("benchmark=imagenet_vit", *overrides).benchmark_settings()[0]


def test_a_moved_folder_and_another_spelling_keep_the_key(tmp_path):
    def key_of(images, *overrides):
        places = (f"paths.data={tmp_path}", f"sources.imagenet={images}")
        return logits_task(settings_of(*places, *overrides)).key

    images = tmp_path / "images"
    (images / "n01440764").mkdir(parents=True)
    (images / "n01440764/a.JPEG").write_bytes(b"123")
    shutil.copytree(images, tmp_path / "elsewhere/val")
    spellings = (images, f"{images}/", f"{images}/../images", tmp_path / "elsewhere")
    keys = {key_of(path) for path in spellings} | {key_of(images, "benchmark.source.batch_size=3")}
    assert len(keys) == 1
    (images / "n01440764/b.JPEG").write_bytes(b"4")
    assert key_of(images) not in keys


def test_the_command_line_then_the_environment_then_the_local_file_say_where(tmp_path, monkeypatch):
    monkeypatch.setattr(parameters, "LOCAL", tmp_path / "sources.yaml")
    assert place("imagenet", "default") == "default"
    parameters.LOCAL.write_text("imagenet: /local")
    assert place("imagenet", "default") == "/local"
    monkeypatch.setenv("IMAGENET", "/from/environment")
    assert settings_of().benchmark.source["data_dir"] == "/from/environment"
    assert settings_of("sources.imagenet=/x").benchmark.source["data_dir"] == "/x"
    parameters.LOCAL.write_text("imagnet: /local")
    with pytest.raises(UsageError, match="did you mean imagenet"):
        place("imagenet")


@pytest.mark.parametrize(
    "path", ["/a,b=c#d(e;f~g", "/ü ö/'x'", 'C:\\d"\\', "/a{b}[c]|&<>^`!*?@%:+$d"]
)
def test_any_path_passes_through_hydra_as_it_is(path):
    override = OverridesParser.create().parse_override(f"precomputed={quoted(path)}")
    assert override.value() == path


def test_lists_of_params_reach_a_stage_where_they_are_not_the_suites_own(tmp_path):
    path = tmp_path / "params.yaml"
    text = (parameters.CONF.parent / "params.yaml").read_text()
    path.write_text(text.replace("  - dirichlet\n", ""))
    given = expanded([f"params={path}", "benchmark=digits", "seed=3"])
    assert given[-2:] == ["benchmark=digits", "seed=3"] and "seed=0" not in given
    assert any(t.startswith("suite.calibrators=['uncalibrated','isotonic',") for t in given)


def test_a_word_vectors_file_stays_in_effect_for_commands_that_name_none(tmp_path):
    entry = {
        "_target_": "utility_calibration.pipeline.sources.similarity.class_similarity",
        "vectors_path": None,
    }
    assert inputs_of(entry, {"vectors_path": "abc"})["files"] == {"vectors_path": "abc"}
    np.savez(tmp_path / "v.npz", a=1)
    named = inputs_of({**entry, "vectors_path": str(tmp_path / "v.npz")}, {})
    assert len(named["files"]["vectors_path"]) == 64
