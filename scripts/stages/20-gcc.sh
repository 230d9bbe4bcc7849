# g++: release build with warnings as errors, unit tests
check "build with g++" build_folder gcc g++ --buildtype=release &&
  counted "unit tests" "$root/scripts/lib/unit_tests.py" build/gcc
