# make demo: set everything up, train a small model in about a minute, translate.
# make test: set everything up, run the tests.
BIN = .venv/bin

# The newest Python that TensorFlow Text has releases for, and that can make environments.
FOUND = $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
    $$python -c 'import sys, ensurepip, ssl, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
        2> /dev/null && echo $$python && break; done)
PYTHON ?= $(or $(FOUND),$(error kzoo needs Python 3.11, 3.12 or 3.13 with venv (on Debian: python3-venv). \
    Install one, or name yours: make PYTHON=NAME))

# Write bytecode even where the environment forbids it, but only into .venv: otherwise each test process compiles
# Keras, TensorFlow and JAX anew, for about 8 s.
export PYTHONDONTWRITEBYTECODE =
export PYTHONPYCACHEPREFIX = $(CURDIR)/.venv/bytecode

# What runs on JAX alone, as it does not depend on the backend; the rest of its folders runs on both. Of
# multilingual.py, TensorFlow's part is in tests/models/test_multilingual_translator.py; test-all runs it on both.
NOT_TENSORFLOW = $(addprefix --ignore=tests/training/test_, \
    bilingual.py curves.py glyph_runs.py language_model.py multilingual.py own_text.py preparation.py \
    recipe_values.py recipes.py run_folder.py starting_preset.py translation_score.py vocabularies.py \
    without_tensorflow.py) \
    $(addprefix --ignore=tests/models/test_, \
    keras_features.py marian.py preset_checks.py preset_files.py search_options.py \
    source_embeddings.py)
# Several processes, killed runs, each family's stopped runs and the browser: minutes, so only in test-all.
SLOW = tests/models/test_two_devices.py \
    $(addprefix tests/training/test_, stopped_families.py stopped_workers.py strategies.py survival.py)
BROWSER = tests/serve/test_page_in_browser.py
ONCE = $(addprefix tests/,data documents engine text evaluation papers benchmarks) \
    $(filter-out tests/test_cli.py,$(wildcard tests/test_*.py))

# Compiled programs are kept between runs, by kind of processor; `make test` removes those older than two weeks.
PROCESSOR := $(shell grep -m 1 -E '^(flags|Features)' /proc/cpuinfo 2> /dev/null | cksum | cut -d ' ' -f 1)
COMPILED = $(CURDIR)/.venv/compiled/$(PROCESSOR)/$@
test-jax test-jax-rest test-once: export JAX_COMPILATION_CACHE_DIR = $(COMPILED)
test-tensorflow test-tensorflow-rest test-served: export TF_XLA_FLAGS = \
    --tf_xla_persistent_cache_directory=$(COMPILED)

.PHONY: demo test test-tensorflow test-tensorflow-rest test-jax test-jax-rest test-served test-once test-torch \
    test-all wheels docs lint setup clean

demo: setup
	$(BIN)/kzoo demo

# Beside each other: much of a test's time is one thread tracing or compiling. The longest first.
test: setup lint
	@find .venv/compiled -type f -mtime +14 -delete 2> /dev/null || true
	$(MAKE) --no-print-directory --output-sync --jobs=4 test-tensorflow test-served test-jax-rest test-jax \
	    test-tensorflow-rest test-once

# Two processes for each backend: TensorFlow keeps every traced function, so memory grows from file to file;
# XLA's compiler ends one that has compiled all of it (a segmentation fault).
test-tensorflow: setup
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -q tests/models \
	    $(NOT_TENSORFLOW) $(SLOW:%=--ignore=%)

test-tensorflow-rest: setup
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -q tests/layers tests/decoding tests/training \
	    $(NOT_TENSORFLOW) $(SLOW:%=--ignore=%)

# What users meet first, on the default backend; SavedModels and the service are TensorFlow's.
test-served: setup
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -q tests/test_cli.py tests/presets tests/export tests/serve \
	    --ignore=$(BROWSER)

test-jax: setup
	KERAS_BACKEND=jax $(BIN)/python -m pytest -q tests/models tests/decoding $(SLOW:%=--ignore=%)

test-jax-rest: setup
	KERAS_BACKEND=jax $(BIN)/python -m pytest -q tests/layers tests/training $(SLOW:%=--ignore=%)

test-once: setup
	KERAS_BACKEND=jax $(BIN)/python -m pytest -q $(ONCE)

test-torch: .venv-torch/ready
	KERAS_BACKEND=torch .venv-torch/bin/python -m pytest -q tests/layers

# Also what takes minutes or the network: killed runs, several processes, the browser, fresh environments, the
# documentation and its examples, transformers.
test-all: test docs .venv-torch/ready
	KZOO_SLOW=1 KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -q $(SLOW) $(BROWSER) \
	    tests/training/test_multilingual.py
	KZOO_SLOW=1 KERAS_BACKEND=jax $(BIN)/python -m pytest -q $(SLOW)
	KZOO_SLOW=1 $(BIN)/python -m pytest -q tests/slow tests/test_docs.py
	KERAS_BACKEND=tensorflow .venv-torch/bin/python -m pytest -q tests/models/test_marian.py \
	    tests/models/test_m2m.py
	$(MAKE) --no-print-directory test-torch

# The library, and the shelf's trained presets.
wheels: setup
	$(BIN)/python -m pip wheel -q --no-deps -w dist . ./presets

# The site, build/docs/index.html; a dead link is an error.
docs: .venv/docs
	KERAS_BACKEND=jax $(BIN)/python -m sphinx -q -W --keep-going -c docs . build/docs

.venv/docs: .venv/ready
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e '.[tensorflow,jax,dev]'
	touch $@

# With PyTorch and transformers, which OPUS-MT's models are compared with.
.venv-torch/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install -q --no-compile --disable-pip-version-check -c constraints.txt \
	    -e '.[tensorflow,dev]' torch transformers
	touch $@

clean:
	rm -rf .venv .venv-torch build dist docs/reference
