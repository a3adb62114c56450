# The front door. CMakePresets.json holds the configurations; this file only names what people ask for.
.DEFAULT_GOAL := build
.PHONY: setup build test demo format check-format asan fuzz clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
# Presets ask for ccache; without it they are configured without a launcher.
LAUNCHER := $(if $(shell command -v ccache),,-DCMAKE_CXX_COMPILER_LAUNCHER=)
SOURCES = git ls-files '*.h' '*.hpp' '*.c' '*.cpp' '*.cu' '*.cuh'
export CTEST_PARALLEL_LEVEL ?= $(JOBS)

setup:
	@.ci/setup.sh

build: setup
	@cmake --preset release $(LAUNCHER) --log-level=WARNING
	@cmake --build build -j $(JOBS)

# Ends with one line "N passed, N failed, N skipped".
test: build
	@.ci/test.sh build

demo: build
	@examples/demo.sh

format: setup
	@$(SOURCES) | xargs -r clang-format-19 -i

check-format: setup
	@$(SOURCES) | xargs -r clang-format-19 --dry-run -Werror

asan: setup
	@cmake --preset asan $(LAUNCHER) --log-level=WARNING
	@cmake --build build-asan -j $(JOBS)
	@.ci/test.sh build-asan

# Every target for FUZZ_SECONDS seconds.
fuzz: setup
	@cmake --preset fuzz $(LAUNCHER) --log-level=WARNING
	@cmake --build build-fuzz -j $(JOBS)
	@.ci/fuzz.sh build-fuzz $(FUZZ_SECONDS)

clean:
	rm -rf build build-asan build-debug build-fuzz
