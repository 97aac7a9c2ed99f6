"""Fitted calibrators as torch modules of fixed arrays, for deployment: `calibrator.to_module()`.

A module maps logits [n, C] to probabilities [n, C] in the type of its arrays, by plain torch
operations that `torch.export` and the ONNX exporter accept. So an exported file runs without this
package. This folder alone imports torch, and `to_module` alone imports this folder.

    whole     what every calibrator's module does before and after its own map
    affine    softmax of an affine map: temperature, vector, matrix, Dirichlet, structured scaling
    isotonic, pooled, patched   the other families
    order     the ranking of a row's classes in operations that exporters accept
"""
