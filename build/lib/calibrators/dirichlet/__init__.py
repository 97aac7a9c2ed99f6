"""Dirichlet calibration with ODIR regularisation."""
