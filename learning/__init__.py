"""Load shedding policies, which choose the partial matches to keep; installed as ``acep.learning``.

The package has the protocol of a policy and the policies themselves: the history of match vectors, learned values,
exploration, and the simple baselines they are compared with. docs/explanation/choice.md proves the bound of an expert
learner.
"""
