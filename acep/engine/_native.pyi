# The compiled core (acep/engine/native); acep.engine.compiled says whether it is there.

version: str
sanitizers: str  # what it was built with, as -fsanitize= takes them; "" usually
