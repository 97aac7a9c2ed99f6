"""What the stages are built on: units, their cache, parallel runs, the command line."""
