"""Which match nodes to keep when not all can be kept; installed as ``acep.learning``.

Here belong the protocol of a shedding policy and the policies themselves: the history of match vectors, coverage of
bundles, learned values, exploration, and the plain baselines they are compared with.
What is proved of them: docs/explanation/choice.md.
"""
