#!/bin/bash
# install_test.sh BUILD: installs BUILD into a temporary folder and uses what is there as a stranger would:
# the program runs, its help names every command, every public header compiles alone, and a program compiled
# against the pkg-config file runs with the shared and with the static library.
set -uo pipefail
build=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
passed=0 failed=0

try() {
  local label=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $label"; fi
}

try "meson install" env DESTDIR="$place" meson install -C "$build" --no-rebuild --quiet
prefix=$place/usr/local
pc=$(find "$place" -name 'kvasir.pc' | head -n 1)
libdir=$(dirname "$(dirname "${pc:-$prefix/lib/pkgconfig/kvasir.pc}")")
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$place LD_LIBRARY_PATH=$libdir
# The sysroot belongs before our own paths only, not before those of the dependencies.
flags() { pkg-config "$@" kvasir | sed "s|$place/usr/include|/usr/include|g; s|$place/usr/lib/|/usr/lib/|g"; }

try "the pkg-config file is there" test -n "$pc"
try "its version is the project's" test "$(pkg-config --modversion kvasir)" = \
  "$(meson introspect --projectinfo "$build" | sed -n 's/.*"version": "\([^"]*\)".*/\1/p')"
try "the program is there" test -x "$prefix/bin/kvasir"
try "kvasir --help" sh -c "'$prefix/bin/kvasir' --help | grep -q generate"
try "kvasir --version" sh -c "'$prefix/bin/kvasir' --version | grep -q '$(pkg-config --modversion kvasir)'"

headers=$(cd "$prefix/include" && find kvasir -name '*.h' -o -name '*.hpp' | sort)
try "public headers are installed" test -n "$headers"
for header in $headers; do
  echo "#include <$header>" >"$place/one.cpp"
  # shellcheck disable=SC2046
  try "$header compiles alone" g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $(flags --cflags) "$place/one.cpp"
done

source=$(dirname "$0")/../../tests/install/use_library.cpp
# shellcheck disable=SC2046
try "a program with the shared library compiles" g++ -std=c++20 "$source" -o "$place/shared" $(flags --cflags --libs)
try "a program with the shared library runs" "$place/shared"
static=$libdir/libkvasir.a
try "the static library is there" test -f "$static"
# shellcheck disable=SC2046
try "a program with the static library compiles" g++ -std=c++20 "$source" -o "$place/static" $(flags --cflags) \
  "$static" $(flags --static --libs | sed 's/-lkvasir\b//')
try "a program with the static library runs" env -u LD_LIBRARY_PATH "$place/static"

echo "checks: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
