"""The parts of the programs score and apply, which take files of a user's classifier."""
