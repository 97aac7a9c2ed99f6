"""What the uncalibrated CIFAR classifiers measure, computed elsewhere in float64.

Means over ten seeded splits of each file of real logits; other splits differ by 0.3 - 0.9 points of
accuracy and by 2 - 5 thousandths in the top-class errors of one split.
"""

SCALES = {
    "accuracy": 1e2,
    "brier": 1e2,
    "cwe_bin": 1e4,
    "tce_bin": 1e3,
    "u_cwe": 1e4,
    "u_topk": 1e3,
    "u_dcg": 1e3,
}
"""The units of the table below, one column per metric."""
KNOWN = {
    "cifar10_repvgg_a0": (94.6, 9.16, 34.7, 36.4, 97, 36.9, 24.5),
    "cifar10_resnet56": (94.3, 9.41, 32.6, 37.9, 96, 37.9, 25.3),
    "cifar10_resnet44": (93.9, 10.47, 39.8, 39.5, 117, 40.4, 26.9),
    "cifar100_repvgg_a2": (77.6, 32.20, 15.3, 55.8, 45, 49.7, 31.7),
    "cifar100_resnet56": (72.9, 41.50, 14.5, 141, 55, 141, 115),
}
