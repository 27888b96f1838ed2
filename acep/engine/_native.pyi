"""The compiled core (acep/engine/native); acep.engine.compiled says whether it is there."""

version: str
