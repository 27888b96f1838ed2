"""Summaries of bounded size with stated errors; installed as ``acep.sketches``.

Here belong the count-min array, the sketch of match maps and the bitmaps that let a long history fit into a fixed
amount of memory. They know nothing of patterns or policies and import nothing else of acep. There is no code here yet.
"""
