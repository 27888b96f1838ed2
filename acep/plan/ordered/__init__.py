"""Make the plan of a row pattern clause: its states, conditions, references and measures, for given columns."""
