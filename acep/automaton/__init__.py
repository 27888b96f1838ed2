"""From the tree to a Thompson automaton, to arcs that each bind one event, to registers and checks."""
