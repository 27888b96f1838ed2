"""The tests of acep: a corpus of cases, an oracle that knows no automaton, and a test module for each module."""
