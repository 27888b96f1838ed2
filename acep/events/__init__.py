"""Read events: find files, read them in blocks, cast columns, and put rows in the order of time, in bounded memory.

:func:`acep.events.files.reading.read_events` reads a whole stream as one Arrow table;
:func:`acep.events.files.stream.open_events` gives it in batches.
"""
