"""Programs of the maintainers: `python -m utility_calibration.scripts.maintain.NAME`."""
