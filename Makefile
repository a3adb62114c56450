# The front door. CMakePresets.json holds the configurations; this file only names what people ask for.
.DEFAULT_GOAL := build
.PHONY: setup build test demo models format check-format asan valgrind fuzz clean

JOBS ?= $(shell nproc)
# Presets ask for ccache; without it they are configured without a launcher. The recipes ask, since set-up installs it.
LAUNCHER = $$(command -v ccache >/dev/null || echo -DCMAKE_CXX_COMPILER_LAUNCHER=)
SOURCES = git ls-files '*.h' '*.hpp' '*.c' '*.cpp' '*.cu' '*.cuh'
export CTEST_PARALLEL_LEVEL ?= $(JOBS)

setup:
	@.ci/setup.sh

# The tool and the examples, no tests.
build: setup
	@cmake --preset release $(LAUNCHER) --log-level=WARNING
	@cmake --build build -j $(JOBS) --target burin burin_examples

# Ends with one line "N passed, N failed, N skipped".
test: build
	@cmake --build build -j $(JOBS)
	@.ci/setup.sh models browser
	@.ci/test.sh build

demo: build
	@examples/demo.sh

# The networks of docs/models.md; those with real weights too, where the archive of pruned weights is at hand.
models:
	@.ci/setup.sh models
	@examples/models/make_all.sh build/models

format: setup
	@$(SOURCES) | xargs -r clang-format-19 -i

check-format: setup
	@$(SOURCES) | xargs -r clang-format-19 --dry-run -Werror

asan: setup
	@cmake --preset asan $(LAUNCHER) --log-level=WARNING
	@cmake --build build-asan -j $(JOBS)
	@.ci/test.sh build-asan

# The runtime on the fake driver, under Valgrind, where that is installed.
valgrind: build
	@cmake --build build -j $(JOBS) --target test_runtime
	@BURIN_MUTATIONS=200 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
	  build/test_runtime "~*gpu*"

# Each fuzz target for as long as BURIN_FUZZ_SECONDS of CMake says.
fuzz: setup
	@cmake --preset fuzz $(LAUNCHER) --log-level=WARNING
	@cmake --build build-fuzz -j $(JOBS) --target burin_fuzz_tests
	@.ci/test.sh build-fuzz -L fuzz

clean:
	rm -rf build build-asan build-debug build-fuzz
