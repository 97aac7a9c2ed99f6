"""What a person asks for: options, other files of theirs, and the folder of the output.

Read `options` first, the command line of `score`, then `job`, which adds what the file says and
all settings that follow. `one_pass` decides whether the file is scored in one pass. `utilities`
and `similarity` read a person's other files. `folder` knows which files of the output folder are
ours.
"""
