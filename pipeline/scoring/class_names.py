"""Names of the classes in the order of their numbers, known without network or data set."""

from collections.abc import Sequence

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError

_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
_CIFAR100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
    camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
    cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
    lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom
    oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
    possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake
    spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor
    train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_YAHOO = (
    "Society & Culture, Science & Mathematics, Health, Education & Reference, Computers & Internet,"
    " Sports, Business & Finance, Entertainment & Music, Family & Relationships,"
    " Politics & Government"
)
CIFAR10, CIFAR100 = tuple(_CIFAR10.split()), tuple(_CIFAR100.split())
YAHOO = tuple(_YAHOO.split(", "))
IMAGENET = ("imagenet", "imagenet_synonyms")


def class_names(names: str | Sequence[str]) -> list[str]:
    """The given list of names, or those of cifar10, cifar100, yahoo, imagenet(_synonyms).

    ImageNet's are timm's. `imagenet` has the first name of each synset, such as "tench";
    `imagenet_synonyms` has all of them: "tench, Tinca tinca". The paper replaces underscores in
    names, which occur in lists of one name per class (great_white_shark), not in timm's.
    """
    if not isinstance(names, str):
        return [str(name) for name in names]
    if names in IMAGENET:
        described = require("timm.data").ImageNetInfo().label_descriptions()
        if names == "imagenet":
            return [text.partition(",")[0] for text in described]
        return list(described)
    fixed = {"cifar10": CIFAR10, "cifar100": CIFAR100, "yahoo": YAHOO}
    if names not in fixed:
        fixes = [f"choose one of {', '.join([*fixed, *IMAGENET])}", "give a list of names"]
        raise InputError(f"{names} is no known list", field="class_names", fixes=fixes)
    return list(fixed[names])


def synonyms_of(names: str | Sequence[str]) -> list[list[str]]:
    """The other names of each class, [C] lists: timm's for `imagenet`, else none."""
    if names != "imagenet":
        return [[] for _ in class_names(names)]
    described = require("timm.data").ImageNetInfo().label_descriptions()
    return [text.split(", ")[1:] for text in described]
