"""How long our metrics and calibrators take, beside plain definitions and other packages."""
