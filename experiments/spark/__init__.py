"""Measure the speed of acep on Spark, against routes through Spark that match nothing."""
