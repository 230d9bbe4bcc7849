# Rules of the house, tests of the scripts
counted "include rules" "$root/scripts/check-includes"
counted "symbols of instruction sets" "$root/scripts/check-isa-symbols" build/gcc
counted "scripts/fetch-model" "$root/scripts/lib/python_tests.py" tests/scripts
