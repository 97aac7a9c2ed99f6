"""Keys of logits hold what files are, not where they lie; the command line says where."""

import shutil

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf

from tests.pipeline.conftest import request_of
from tests.refusals import fails
from utility_calibration.pipeline.harness.code_digest import UnknownTarget
from utility_calibration.pipeline.harness.parameters import CONF, UsageError
from utility_calibration.pipeline.harness.units import composed
from utility_calibration.pipeline.sources.input_digests import inputs_of
from utility_calibration.pipeline.tasks import logits_task


def settings_of(*overrides):
    return request_of("benchmark=imagenet_vit", *overrides).units()[0].settings


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


def test_the_command_line_then_ones_own_file_then_the_environment_say_where(tmp_path, monkeypatch):
    assert settings_of("paths.data=/d").benchmark.source["data_dir"] == "/d/imagenet"
    monkeypatch.setenv("IMAGENET", "/from/environment")
    assert settings_of().benchmark.source["data_dir"] == "/from/environment"
    assert settings_of("sources.imagenet=/x").benchmark.source["data_dir"] == "/x"
    shutil.copytree(CONF, tmp_path / "conf")
    own = tmp_path / "conf/local/default.yaml"
    for name, said in (("imagenet", "/own"), ("imagnet", None)):
        own.write_text(f"# @package _global_\nsources: {{{name}: /own}}\n")
        with initialize_config_dir(str(tmp_path / "conf"), version_base="1.3"):
            if said:
                assert compose("config").sources.imagenet == said
            else:
                with pytest.raises(HydraException, match="local/default"):
                    compose("config")


def params(folder, **changes):
    """A params.yaml with other values, by dotted key."""
    held = OmegaConf.load(CONF.parent / "params.yaml")
    OmegaConf.set_struct(held, False)
    for key, value in changes.items():
        OmegaConf.update(held, key.replace("__", "."), value)
    OmegaConf.save(held, folder / "params.yaml")
    return f"params={folder / 'params.yaml'}"


ODD_PATH = "/a,b=c#d(e;f~g ü'x' {b}[c]|&<>^`!*?@%:+$d"


def test_every_value_of_params_reaches_a_stage_as_it_is(tmp_path):
    given = params(tmp_path, splits__count=2, paths__precomputed=ODD_PATH, tuning__patching_runs=3)
    config = composed([given, "benchmark=digits", "calibrator=patching"])
    assert (config.splits.count, config.paths.precomputed) == (2, ODD_PATH)
    assert config.calibrator.tuning_runs == 3  # the benchmark's own choice is 4


@pytest.mark.parametrize(
    ("changes", "beside", "told"),
    [
        ({"splits__cuont": 2}, (), "splits.cuont"),
        ({"calibrator": {"l2": 1}}, (), "suite.calibrators"),
        ({}, ("seed=3",), "dvc exp run -S seed"),
    ],
)
def test_a_value_of_params_without_effect_is_refused(changes, beside, told, tmp_path):
    with fails(UsageError, told):
        composed([params(tmp_path, **changes), "benchmark=digits", *beside])


def test_a_word_vectors_file_stays_in_effect_for_commands_that_name_none(tmp_path):
    entry = {
        "_target_": "utility_calibration.pipeline.sources.similarity.class_similarity",
        "vectors_path": None,
    }
    assert inputs_of(entry, {"vectors_path": "abc"})["files"] == {"vectors_path": "abc"}
    np.savez(tmp_path / "v.npz", a=1)
    named = inputs_of({**entry, "vectors_path": str(tmp_path / "v.npz")}, {})
    assert len(named["files"]["vectors_path"]) == 64


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ("no_such_package.logits", ("no package no_such_package", "install")),
        ("utility_calibration.pipeline.sources.digits.nothing", ("digits has no nothing",)),
        ("utility_calibration.pipeline.nothing.logits", ("pipeline has no nothing.logits",)),
        ("source_of_mine.logits", ("no_such_library", "install")),
    ],
)
def test_an_unknown_source_says_which_part_of_its_name_is_missing(
    target, missing, tmp_path, monkeypatch
):
    (tmp_path / "source_of_mine.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with fails(UnknownTarget, f"{target}: ", *missing):
        inputs_of({"_target_": target}, {})
