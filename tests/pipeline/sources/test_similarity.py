"""Similarity of classes from word vectors, against numbers by hand, and from a person's file."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hydra.utils import instantiate

from tests.pipeline.sources.conftest import refused
from tests.refusals import check_line, refuses
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.pipeline.own.request.job import settings_of
from utility_calibration.pipeline.own.request.options import parsed
from utility_calibration.pipeline.own.request.similarity import file_similarity, in_order
from utility_calibration.pipeline.scoring.class_names import CIFAR100, class_names
from utility_calibration.pipeline.sources.similarity import class_similarity

VECTORS = {
    "tiger": [1.0, 0.0, 0.0],
    "shark": [0.0, 2.0, 0.0],
    "cat": [3.0, 4.0, 0.0],
    "great": [0.0, 0.0, 0.5],
}


@pytest.fixture
def vectors(tmp_path):
    """The folder with one vocabulary as word2vec binary and text, under names that are in use.

    gensim's download, word2vec-google-news-300.gz, is binary; a name with `.bin` may hold text.
    """
    keyed = require("gensim.models").KeyedVectors(vector_size=3)
    keyed.add_vectors(list(VECTORS), np.array(list(VECTORS.values()), dtype=np.float32))
    keyed.save_word2vec_format(str(tmp_path / "small.bin"), binary=True)
    keyed.save_word2vec_format(str(tmp_path / "small.txt"), binary=False)
    for name in NAMES[2:4]:
        with gzip.open(tmp_path / name, "wb") as file:
            file.write((tmp_path / "small.bin").read_bytes())
    (tmp_path / NAMES[4]).write_bytes((tmp_path / "small.txt").read_bytes())
    return tmp_path


NAMES = ["small.bin", "small.txt", "GoogleNews-vectors-negative300.bin.gz",
         "word2vec-google-news-300.gz", "glove.bin.txt"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_binary_and_text_give_the_cosines_of_mean_vectors(vectors, name):
    names = ["Tiger_Shark", "cat", "great white-shark, & (4)", "kangaroo"]
    matrix, report = class_similarity(names, vectors / name)
    means = np.array([[0.5, 1.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 0.25]])
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    expected = np.eye(4)
    expected[:3, :3] = unit @ unit.T
    np.testing.assert_allclose(matrix, expected, atol=1e-7)
    assert matrix.dtype == np.float64
    check_line(report.pop("line"), name, "1 of 4")
    assert report == {
        "vectors": name,
        "dimensions": 3,
        "classes": 4,
        "out_of_vocabulary": ["kangaroo"],
        "partly_covered": {"great white-shark, & (4)": ["white", "4"]},
        "by_synonym": {},
    }


def test_glove_for_cifar100_gives_a_sensible_symmetric_matrix(shared_dir):
    path = shared_dir / "embeddings" / "cifar100_classes_glove100.txt"
    matrix, report = class_similarity(CIFAR100, path)
    # One vector per class name as spelled: two-word names have none under the paper's rule.
    assert report["out_of_vocabulary"] == [name for name in CIFAR100 if "_" in name]
    for name in report["out_of_vocabulary"]:
        row = CIFAR100.index(name)
        np.testing.assert_array_equal(matrix[row], np.eye(100)[row])
    whole, report = class_similarity(CIFAR100, path, whole_names=True)
    assert report["out_of_vocabulary"] == []
    np.testing.assert_array_equal(whole, whole.T)
    boy, girl, rocket = (CIFAR100.index(name) for name in ("boy", "girl", "rocket"))
    assert whole[boy, girl] > 0.9 > whole[boy, rocket]


def test_imagenet_has_one_name_per_class_or_all_of_them():
    first, all_names = class_names("imagenet"), class_names("imagenet_synonyms")
    assert (first[2], len(first)) == ("great white shark", 1000)
    assert all_names[2].startswith("great white shark, white shark, man-eater")
    assert not any("," in name for name in first)


def test_a_name_without_a_vector_goes_by_its_first_synonym_with_one(tmp_path):
    words = {"respirator": [1.0, 0.0], "gas": [0.0, 1.0], "golf": [1.0, 1.0], "cart": [1.0, -1.0]}
    lines = [f"{word} {' '.join(map(str, numbers))}" for word, numbers in words.items()]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join([f"{len(words)} 2", *lines]) + "\n")
    matrix, details = class_similarity("imagenet", path)
    names = class_names("imagenet")
    mask, golf_cart = names.index("gasmask"), names.index("golfcart")
    assert details["by_synonym"]["gasmask"] == "respirator"
    assert details["by_synonym"]["golfcart"] == "golf cart"
    assert matrix[mask, golf_cart] == pytest.approx(1)
    assert not details["by_synonym"].keys() & set(details["out_of_vocabulary"])
    listed, details = class_similarity(["gasmask", "golf"], path)  # a person's names have none
    assert details["out_of_vocabulary"] == ["gasmask"] and listed[0, 1] == 0


def test_absent_vectors_are_one_line_that_says_how_to_download_them(
    tmp_path, monkeypatch, benchmark_config
):
    downloader = require("gensim.downloader")
    for name in ("BASE_DIR", "base_dir"):
        monkeypatch.setattr(downloader, name, str(tmp_path / "gensim"))
    entry = benchmark_config("imagenet_vit").similarity
    how = "gensim.downloader word2vec-google-news-300 word_vectors=<file>"
    options = {key: value for key, value in entry.items() if key != "_target_"}
    refused(how, class_similarity, **options)


def test_files_that_are_not_vectors(vectors):
    texts = {"page.html": "<html>", "short.txt": "3000000 300\ntiger 1 2", "none.txt": "0 300\n"}
    for name, text in texts.items():
        (vectors / name).write_text(text)
    (vectors / "cut.bin").write_bytes((vectors / "small.bin").read_bytes()[:-7])
    (vectors / "cut.gz").write_bytes((vectors / NAMES[3]).read_bytes()[:-9])
    for name in (*texts, "cut.bin", "cut.gz"):
        refused(name, class_similarity, "cifar10", vectors / name)
    refused("absent.bin", class_similarity, "cifar10", vectors / "absent.bin")


def test_a_matrix_goes_by_the_names_of_the_classes(tmp_path):
    names, matrix = ["dog", "cat", "eel"], np.array([[1, 0.5, 0.2], [0.5, 1, 0.1], [0.2, 0.1, 1]])
    details = {"classes": 3, "origin": {"file": "a.csv"}}
    sorted_matrix = matrix[np.ix_([1, 0, 2], [1, 0, 2])]
    frame = pd.DataFrame(matrix, index=names, columns=names)
    np.savez(tmp_path / "s.npz", matrix=matrix, class_names=names)
    frame.to_csv(tmp_path / "s.csv")
    frame.loc[["eel", "dog", "cat"]].to_csv(tmp_path / "lines.csv")
    frame.to_csv(tmp_path / "header.csv", index=False)
    for name in ("s.npz", "s.csv", "lines.csv", "header.csv"):
        found = file_similarity(path=tmp_path / name)
        placed, _ = in_order(found, details | {"class_names": sorted(names)})
        np.testing.assert_array_equal(placed, sorted_matrix)
        for others in ({"class_names": ["dog", "cat", "emu"]}, {}):
            with refuses("class name", file=tmp_path / name):
                in_order(found, details | others)
    np.savetxt(tmp_path / "bare.csv", matrix, delimiter=",")
    bare = file_similarity(path=tmp_path / "bare.csv")
    np.testing.assert_array_equal(bare[0], matrix)
    with refuses("similarity", file=tmp_path / "bare.csv", fix="header"):
        in_order(bare, details | {"class_names": names})
    for known in (details, details | {"class_names": names, "origin": {"file": "a.npz"}}):
        assert in_order(bare, known) is bare
    pd.DataFrame(matrix).to_csv(tmp_path / "counted.csv")  # pandas' own 0, 1, 2
    counted = in_order(file_similarity(path=tmp_path / "counted.csv"), details)
    np.testing.assert_array_equal(counted[0], matrix)


def test_the_decimal_sign_of_a_similarity_is_said_where_numbers_do_not_show_it(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a;b\n2.345;1.234\n1.234;2.345\n")
    with refuses("decimal sign", fix="--decimal '.'"):
        file_similarity(path=path)
    expected = np.array([[2.345, 1.234], [1.234, 2.345]])
    np.testing.assert_array_equal(file_similarity(path=path, decimal=".")[0], expected)
    np.testing.assert_array_equal(file_similarity(path=path, decimal=",")[0], 1000 * expected)
    options = parsed("", ["my.npz", "--similarity", str(path), "--decimal", "."])
    (settings,) = settings_of(options, ["temperature"]).values()
    np.testing.assert_array_equal(instantiate(settings.benchmark.similarity)[0], expected)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"other": np.eye(2)}, "matrix"),
        ({"matrix": np.ones((2, 3))}, "square"),
        ({"matrix": np.array([[1, 0.5], [0.2, 1]])}, "symmetric"),
        ({"matrix": np.array([[1, np.nan], [np.nan, 1]])}, "NaN"),
    ],
)
def test_what_is_no_similarity_is_one_line(tmp_path, arrays, told):
    np.savez(tmp_path / "s.npz", **arrays)
    refused(f"s.npz {told}", file_similarity, path=tmp_path / "s.npz")
    for text in ("1;0.5\n0.5;1\n", "1;,5\n,5;1\n", "1,.5\n.5,1,2\n"):
        (tmp_path / "s.csv").write_text(text)
        refused("s.csv CSV", file_similarity, path=tmp_path / "s.csv")
    refused("none.csv", file_similarity, path=tmp_path / "none.csv")
