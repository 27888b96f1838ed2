"""Match queries and automata that change while the stream runs."""
