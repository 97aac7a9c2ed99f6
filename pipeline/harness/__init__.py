"""The base of all stages: units, their cache, parallel runs, the command line."""
