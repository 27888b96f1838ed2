"""How fast acep runs on Spark, against routes through Spark that match nothing."""
