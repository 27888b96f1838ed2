"""Build the automaton of a pattern: a Thompson automaton, arcs that each bind one event, registers and checks."""
