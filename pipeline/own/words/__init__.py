"""Words that files, persons and messages use: names of files, of columns and of classes.

Read `forms` first: which kinds of files there are, by their endings. Then `file_options`: what a
person may say about their file, as options of the commands. `usual_names` and `patterns` know the
names that need no such word: of columns by their purpose, and of columns by their class.
`message_text` has the words of messages: how they name parts of a file, and fixes that recur.
"""
