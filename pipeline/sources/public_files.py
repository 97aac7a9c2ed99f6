"""Files of public repositories: where each one lies, at which commit, and its SHA-256."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..harness.artifacts import sha256_of
from .downloads import check_digest, download


@dataclass(frozen=True)
class PublicFile:
    """A file at one commit of a repository on GitHub, and its name in a folder of ours."""

    repository: str
    """owner/name"""
    commit: str
    path: str
    """Inside the repository."""
    name: str
    """Inside the folder, unlike all others' names."""
    sha256: str | None = None
    """None: a digest of what it holds is checked after it is read."""

    @property
    def url(self) -> str:
        """Where its bytes are public."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.path}"

    def described(self) -> dict[str, Any]:
        """Its origin for the record."""
        return {"repository": self.repository, "commit": self.commit, "path": self.path}

    def inside(self, folder: Path) -> Path | None:
        """The file under its name in a folder, or in a clone of the repository; None if absent."""
        for place in (folder / self.name, folder / self.path):
            if place.is_file():
                return place
        return None

    def fetched(self, folder: Path, setting: str) -> Path:
        """The file in a folder, into which it is downloaded if it is not there.

        Args:
            folder: where it lies under its name, or a clone of the repository.
            setting: the setting that names the folder, for the message.

        Raises:
            InputError: it is not there and cannot be downloaded, or its SHA-256 is another one.
        """
        path = self.inside(folder)
        if path is None:
            path = folder / self.name
            clone = f"name its folder or a clone of {self.repository} by {setting}"
            download(self.url, path, ["put that file there", clone])
        if self.sha256 is not None:
            fix = "delete the file and run again, which downloads it"
            check_digest(path, sha256_of(path), self.sha256, fix)
        return path
