"""A forecast of ImageNet's validation images from the public answers of 64 networks.

The authors of ImageNetV2 (Recht et al. 2019) published the five most probable classes of each
network and image. Each of them is a vote here. A vote's weight is how often its rank is right on
images that are left out of the benchmark. What is then missing to one is spread evenly over all
classes. This is not a model of the paper, but it is real, and as large as the paper's ImageNet
benchmarks.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, reason_of

from ..harness.artifacts import sha256_of_json
from ..harness.task import Progress, no_progress
from .downloads import check_digest
from .imagenet import SYNSETS, VALIDATION_IMAGES
from .input_digests import reads
from .public_files import PublicFile
from .source_result import SourceResult

REPOSITORY = "modestyachts/ImageNetV2"
COMMIT = "b14e00d85f3065a18486d1a43181990a538e0122"
FOLDER = "data/predictions/imagenet-validation-original"
RANKS = 5
IMAGES_PER_CLASS = VALIDATION_IMAGES // SYNSETS
"""The label of row i is i // IMAGES_PER_CLASS: the rows are in the order of the class folders."""
_NETWORKS = """
    alexnet-15d967d6 bninception-ec4991a6 cafferesnet101-5c06a6a1 densenet121-4525324b
    densenet161-45d65c9d densenet169-71c15785 densenet201-6c6239e8 dpn107-039e4bf0 dpn131-8a1fdb4b
    dpn68-7067b004 dpn68b-9e140789 dpn92-9558f038 dpn98-541a8b24 fbresnet152-45459171
    inception_resnet_v2_tf-eda84018 inception_v1_tf-605d9059 inception_v2_tf-3bc1cbaa
    inception_v3-c29693fc inception_v3_tf-30254af5 inception_v4_tf-5cf9b9b8
    inceptionresnetv2-7c7ece0d inceptionv3-5061e550 inceptionv4-01bf2783 mobilenet_v1_tf-8a004ae4
    nasnet_large_tf-7373de49 nasnet_mobile_tf-8303edda nasnetalarge-0234001a nasnetamobile-78a00fb1
    pnasnet5large-933f7745 pnasnet_large_tf-50f13d46 pnasnet_mobile_tf-bab72b95 polynet-e25644dc
    resnet101-d2fe9d92 resnet152-4eb0169d resnet18-60b0600d resnet34-9aed305d resnet50-6ab1b82a
    resnet_v1_101_tf-b87e92aa resnet_v1_152_tf-6ecb31ba resnet_v1_50_tf-6dc9e7b9
    resnet_v2_101_tf-37ebe24c resnet_v2_152_tf-70f0d88d resnet_v2_50_tf-4c34fa87
    resnext101_32x4d-ffd48aa8 resnext101_64x4d-5c877d58 se_resnet101-4e31e5fd se_resnet152-7d64820a
    se_resnet50-062b4aaa se_resnext101_32x4d-092c9fe9 se_resnext50_32x4d-be9d15b0 senet154-2aa98d47
    squeezenet1_0-21238510 squeezenet1_1-ca0c92d4 vgg11-dac8688c vgg11_bn-2670343b vgg13-4045fe30
    vgg13_bn-bdff0b8b vgg16-3b06ee9c vgg16_bn-783ae905 vgg19-7a39255a vgg19_bn-9e6d32aa
    vgg_16_tf-f7fd7ef5 vgg_19_tf-014aeda6 xception-4306aab6
"""
NETWORKS = dict(entry.split("-") for entry in _NETWORKS.split())
"""The first digits of the SHA-256 of each network's votes; three Fisher-vector models are left out.

It is that of the votes as int16 [50000, 5], whatever type of number the file has.
"""
VOTES_SHA256 = "951d0edebfbde6734b36dec44019be053ba83b002e6b70bf3e3e9c3a748dc71f"
"""Of all votes as int16 [50000, 64, 5]."""
FETCH_AGAIN = "delete the file and run again, which downloads it"


def votes_file(network: str) -> PublicFile:
    """The public file of one network's votes."""
    return PublicFile(
        REPOSITORY, COMMIT, f"{FOLDER}/{network}.npy", name=f"imagenet_votes/{network}.npy"
    )


def votes_content(data_dir: str | Path) -> str | None:
    """The SHA-256 that the votes must have, if all files are in the folder; None if one is not."""
    folder = Path(data_dir).expanduser()
    paths = [votes_file(network).inside(folder) for network in NETWORKS]
    if any(path is None for path in paths):
        return None
    return sha256_of_json([VOTES_SHA256])


@reads(lambda _: SYNSETS, data_dir=votes_content)
def imagenet_votes_logits(
    *,
    data_dir: str | Path,
    weighing_images: int = 1000,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SourceResult:
    """Weigh the ranks on some images, drawn by `seed`; return the logits of all others.

    Args: those of conf/benchmark/imagenet_votes.yaml; `progress` is called for each file.

    Raises:
        InputError: a file is neither there nor can be downloaded, or is another one, or a number of
            the configuration is impossible.
    """
    if not isinstance(weighing_images, int) or not 1 <= weighing_images < VALIDATION_IMAGES:
        message = f"{weighing_images}, expected a whole number from 1 to {VALIDATION_IMAGES - 1}"
        raise InputError(message, field="benchmark.source.weighing_images")
    votes = read_votes(Path(data_dir).expanduser(), progress)
    labels = np.arange(VALIDATION_IMAGES, dtype=np.int64) // IMAGES_PER_CLASS
    order = np.random.default_rng(seed).permutation(VALIDATION_IMAGES)
    weighing, others = np.sort(order[:weighing_images]), np.sort(order[weighing_images:])
    weights = rank_weights(votes[weighing], labels[weighing])
    forecast = vote_forecast(votes[others], weights, SYNSETS)
    details = {
        "source": "ImageNet-1k validation set, votes of 64 public networks; not a paper's model",
        "model": f"{len(NETWORKS)} networks, each with {RANKS} votes per image",
        "preprocessing": "logarithm of the weighted shares of votes",
        "origin": {
            "repository": REPOSITORY,
            "commit": COMMIT,
            "folder": FOLDER,
            "votes_sha256": VOTES_SHA256,
            "networks": list(NETWORKS),
            "rank_weights": weights.tolist(),
        },
        "warnings": [],
    }
    return SourceResult(np.log(forecast), labels[others], details)


def read_votes(folder: Path, progress: Progress = no_progress) -> NDArray[np.int16]:
    """The votes [50000, 64, 5] as class numbers, in the order of NETWORKS.

    Raises:
        InputError: a file is neither there nor can be downloaded, or holds other votes than the
            public ones; it is named.
    """
    votes = np.empty((VALIDATION_IMAGES, len(NETWORKS), RANKS), dtype="<i2")
    for place, (network, digits) in enumerate(NETWORKS.items()):
        progress(place, len(NETWORKS), "reading votes")
        path = votes_file(network).fetched(folder, "sources.real")
        votes[:, place] = _votes_of(path, digits)
    sha256 = hashlib.sha256(votes.tobytes()).hexdigest()
    check_digest(folder, sha256, VOTES_SHA256, FETCH_AGAIN, "all votes")
    progress(len(NETWORKS), len(NETWORKS), "reading votes")
    return votes


def _votes_of(path: Path, digits: str) -> NDArray[np.int16]:
    """One network's votes [50000, 5]."""
    try:
        answers = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        message = f"not an array of NumPy ({reason_of(error)})"
        raise InputError(message, file=path, fixes=FETCH_AGAIN) from error
    shape = (VALIDATION_IMAGES, RANKS)
    if getattr(answers, "shape", None) != shape or answers.dtype.kind not in "iu":
        message = f"expected whole numbers of shape {list(shape)}"
        raise InputError(message, file=path, fixes=FETCH_AGAIN)
    votes: NDArray[np.int16] = answers.astype("<i2")
    sha256 = hashlib.sha256(np.ascontiguousarray(votes).tobytes()).hexdigest()
    check_digest(path, sha256, digits, FETCH_AGAIN, "its votes")
    return votes


def rank_weights(votes: NDArray[np.int16], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often the vote of each rank is right, [5], over images and networks."""
    is_right = votes == labels[:, None, None]
    return is_right.mean(axis=(0, 1))


def vote_forecast(
    votes: NDArray[np.int16], weights: Sequence[float] | NDArray[np.float64], classes: int
) -> NDArray[np.float32]:
    """Probabilities [n, C]: the weighted share of each class in the votes, the rest spread evenly.

    Args:
        votes: [n, networks, ranks], class numbers.
        weights: [ranks], with a sum below one.
        classes: C.
    """
    n, networks, ranks = votes.shape
    spread = (1 - float(np.sum(weights))) / classes
    forecast = np.full((n, classes), spread, dtype=np.float64)
    rows = np.repeat(np.arange(n), networks)
    for rank in range(ranks):
        np.add.at(forecast, (rows, votes[:, :, rank].ravel()), weights[rank] / networks)
    return forecast.astype(np.float32)
