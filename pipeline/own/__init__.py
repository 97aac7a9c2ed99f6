"""The parts of the programs score and apply, which take files of a user's classifier.

An order in which to read them. Each line begins where the line before it ends:

    read             bytes become named columns, or named arrays. forms: which file is read how.
                     tables, table_memory, text_tables, json_lines, decimals, spelling, entries,
                     lists: its parts.
    prepared         leaves out what is ignored, and makes one row and one label per point.
                     cells: what a cell says; class_masses: rows that list some candidates.
    whole_file       joins a file, or a file for calibration and one for tests.
    layout_from_rows decides what each column is. choices: what the person says; roles and
                     usual_names: labels, groups and other purposes.
    classes_by_name  which column of a table is which class, by patterns; column_errors: why not.
    classes_by_place which column is which class where no name says it. single_column, confidence:
                     one column for two classes; classes_of_calibrator: points without labels.
    layout           applies the layout to all rows. answers, answer_array: what it takes from them;
                     scale: logits or probabilities; file_points: what it returns.
    check            checks all points by the tables in rules and point_rules. point_notes, copies,
                     ties: what is odd, though it may be meant; splits: which points test.
                     message_text: how messages name parts of a file.

Then the programs, which share these parts:

    run              `score`: options and job say what is asked, size whether it fits into the
                     memory, the stages compute it, results writes it. utilities, similarity:
                     a person's other files; folder: which files of the output are ours.
    stream           `score --stream`: batches, shards and sums; one_pass says when.
    new_points       `apply`: deployed holds the calibrator, rewritten writes whole_rows again.

Words:

    answers          what the file says of the classes: logits or probabilities, [n, C].
    place            the position of a column among the columns, or of a distinct label's text in
                     `Labels.texts`; from 0 on.
    number, code     the number of a class, 0 … C-1, in the order of `Layout.class_names`. `codes`
                     are these numbers by point, [n], or by the text of a label.
    label            what the file has for a point: a name, or a number that need not be that of
                     the class, such as 1 … C. The layout translates it to a code.
    scale, kind      logits or probabilities.
    role, purpose    what a column is beside answers: labels, groups, clusters, weights, splits.
    mistakes         errors that do not keep the rest of a file from being checked.
    notes            what was decided or left out, for the person to read.
"""
