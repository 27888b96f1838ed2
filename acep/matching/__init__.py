"""Match what a user passes: acep.match over a whole table or files, acep.Matcher over a stream."""
