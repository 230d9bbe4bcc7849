# The build folders of scripts/test. To be sourced; needs root.

# The newest clang++ from version 16 on.
clang_program() {
  local version
  for version in 25 24 23 22 21 20 19 18 17 16; do
    if command -v "clang++-$version" >/dev/null; then printf 'clang++-%s\n' "$version"; return 0; fi
  done
  echo "no clang++ of version 16 or newer" >&2
  return 1
}

# build_folder NAME COMPILER [MESON OPTIONS...]: configures build/NAME once (again when the options changed)
# and builds all. ccache is used when it is there.
build_folder() {
  local name=$1 compiler=$2 folder=$root/build/$1 wanted
  shift 2
  if command -v ccache >/dev/null; then compiler="ccache $compiler"; fi
  wanted="$compiler $*"
  if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/configured-with" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$folder"
    CXX="$compiler" meson setup "$folder" "$root" -Dwerror=true "$@"
    printf '%s' "$wanted" >"$folder/configured-with"
  fi
  ninja -C "$folder"
}
