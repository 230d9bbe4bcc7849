# Address and undefined-behaviour sanitizers: unit tests
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
export LSAN_OPTIONS=suppressions=$root/tests/leaks.txt:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
check "build with clang and sanitizers" build_folder asan "$(clang_program)" --buildtype=debugoptimized \
  -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true -Dbenchmarks=disabled &&
  counted "unit tests" "$root/scripts/lib/unit_tests.py" build/asan
