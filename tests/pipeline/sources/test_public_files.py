"""Files of public repositories: found in a folder or a clone, checked, and named where absent."""

import hashlib

import pytest

from tests.pipeline.sources.conftest import refused
from tests.refusals import refuses
from utility_calibration.pipeline.sources.public_files import PublicFile

CONTENT = b"a public file"
PUBLIC = PublicFile(
    "owner/name", "0123abc", "deep/file.tsv", "ours.tsv", hashlib.sha256(CONTENT).hexdigest()
)


@pytest.mark.parametrize("place", [PUBLIC.name, PUBLIC.path])
def test_it_lies_under_its_name_or_as_in_a_clone(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(CONTENT)
    assert PUBLIC.fetched(tmp_path, "sources.real") == path
    path.write_bytes(CONTENT + b".")
    refused(f"{place} SHA-256 {PUBLIC.sha256[:12]}", PUBLIC.fetched, tmp_path, "sources.real")


def test_without_network_one_line_says_what_goes_where(tmp_path):
    place = tmp_path / PUBLIC.name
    with refuses(file=place, fix="sources.real", number=PUBLIC.url):
        PUBLIC.fetched(tmp_path, "sources.real")
    assert list(tmp_path.iterdir()) == []


def test_a_download_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    source = tmp_path / "elsewhere.tsv"
    source.write_bytes(CONTENT)
    monkeypatch.setattr(PublicFile, "url", property(lambda _: source.as_uri()))
    folder = tmp_path / "folder"
    assert PUBLIC.fetched(folder, "sources.real").read_bytes() == CONTENT
    assert [path.name for path in folder.iterdir()] == [PUBLIC.name]
