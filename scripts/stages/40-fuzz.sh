# Fuzzers, a minute each from the stored corpus (the programs of the stage asan)
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
counted "fuzzers" "$root/scripts/lib/fuzz.py" build/asan --seconds "${KVASIR_FUZZ_SECONDS:-60}"
