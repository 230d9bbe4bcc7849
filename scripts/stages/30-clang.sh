# clang: release build with warnings as errors, unit tests
check "build with clang" build_folder clang "$(clang_program)" --buildtype=release &&
  counted "unit tests" "$root/scripts/lib/unit_tests.py" build/clang
