"""Find the columns of a DataFrame, with their types and times, and say which rows queries need."""
