"""What the stages stand on: units, runs, files, fingerprints."""
