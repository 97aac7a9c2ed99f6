"""Files of public repositories: where each one lies, at which commit, and its SHA-256."""

import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError, MissingResource, reason_of

from ..harness.artifacts import sha256_of

SECONDS = 30  # without an answer of the server


@dataclass(frozen=True)
class PublicFile:
    """A file at one commit of a repository on GitHub, and its name in a folder of ours."""

    repository: str  # owner/name
    commit: str
    path: str  # inside the repository
    name: str  # inside the folder, unlike all others' names
    sha256: str | None = None  # None: what it holds is checked after it is read

    @property
    def url(self) -> str:
        """Where its bytes are public."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.path}"

    def described(self) -> dict[str, Any]:
        """Its origin for the record."""
        return {"repository": self.repository, "commit": self.commit, "path": self.path}

    def inside(self, folder: Path) -> Path | None:
        """The file under its name in a folder, or in a clone of the repository; None if absent."""
        places = (folder / self.name, folder / self.path)
        return next((place for place in places if place.is_file()), None)

    def fetched(self, folder: Path, setting: str) -> Path:
        """The file in a folder, into which it is downloaded if it is not there.

        Args:
            folder: where it lies under its name, or a clone of the repository.
            setting: the setting that names the folder, for the message.

        Raises:
            MissingResource: it is not there and cannot be downloaded.
            InputError: its SHA-256 is another one.
        """
        path = self.inside(folder)
        if path is None:
            path = folder / self.name
            self._download(path, setting)
        self._check(path)
        return path

    def _download(self, path: Path, setting: str) -> None:
        try:
            with (
                urllib.request.urlopen(self.url, timeout=SECONDS) as answer,
                atomic_path(path) as temporary,
                temporary.open("wb") as file,
            ):
                copyfileobj(answer, file)
        except (urllib.error.URLError, OSError) as error:
            raise MissingResource(
                f"{path}: no such file, and the download failed ({reason_of(error)}): put "
                f"{self.url} there, or name its folder or a clone of {self.repository} by {setting}"
            ) from error

    def _check(self, path: Path) -> None:
        if self.sha256 is None:
            return
        sha256 = sha256_of(path)
        if sha256 != self.sha256:
            raise InputError(
                f"its SHA-256 begins with {sha256[:12]}, that of {self.path} in {self.repository} "
                f"with {self.sha256[:12]}",
                file=path,
                fixes="delete the file and run again, which downloads it",
            )
