"""The parts of the programs score and apply, which take files of a user's classifier.

Nine rooms, in an order in which to read them. Each imports only from rooms above it, and its own
docstring says which of its files to read first:

    words            how files, persons and messages name things.
    reading          bytes become named columns, or named arrays.
    rows             one row and one label per point, without the points and columns that the
                     person leaves out (--ignore-label, --ignore).
    columns          which column is which class, and on which scale: the `Layout`.
    points           the layout applied to whole files or parts, and the points checked.
    request          what the person asks for: options, other files, the folder of the output.
    applying         `apply`: a saved calibrator for new points.
    streaming        `score --stream`: one pass over points beyond memory.
    running          `score`: the stages run, and the reports are written.

Words:

    answers          what the file says of the classes: logits or probabilities, [n, C].
    column place     the column's position among the columns of answers, from 0.
    text place       the position of a label's text in `Labels.texts`, from 0.
    place            one of these two; the text beside it says which.
    number, code     the number of a class, 0 … C-1, in the order of `Layout.class_names`. `codes`
                     are these numbers by point, [n], or by the text of a label.
    label            what the file has for a point: a name, or a number that need not be that of
                     the class, such as 1 … C. The layout translates it to a code.
    scale, kind      logits or probabilities.
    role, purpose    what a column is beside answers: labels, groups, clusters, weights, splits.
    mistakes         errors after which checking goes on, so that all are reported at once.
    notes            what was decided or left out, for the person to read.
"""
