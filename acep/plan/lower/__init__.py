"""Lower plans to the flat tables and programs that the native core reads."""
