"""The paper's utility classes, which describe the users of a forecast and what they gain."""
