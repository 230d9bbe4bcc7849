# Thread sanitizer, with our own thread backend: unit tests
# libgomp is not instrumented, so its barriers would look like races; see thread_backend in meson_options.txt.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
check "build with clang and the thread sanitizer" build_folder tsan "$(clang_program)" --buildtype=debugoptimized \
  -Db_sanitize=thread -Db_lundef=false -Dthread_backend=std -Dbenchmarks=disabled &&
  counted "unit tests" "$root/scripts/lib/unit_tests.py" build/tsan --skip-suite model
