"""Keep a run within its budget: choose which partial matches stay, and estimate what was lost."""
