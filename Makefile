# One command for each thing done with the repository; `make help` lists them.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# How many cases the random tests try; see tests/conftest.py.
export ACEP_CASES

.DEFAULT_GOAL := help

.PHONY: help
help:  ## list what make can do
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: venv
venv: $(STAMP)  ## make .venv with everything installed, acep itself as an editable install

# The virtual environment is made again from nothing when what it should hold has changed.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[spark,pandas,polars,test,dev]'
	touch $@
