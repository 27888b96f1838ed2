"""Explain a query stage by stage, draw its automaton, and say why events do not match."""
