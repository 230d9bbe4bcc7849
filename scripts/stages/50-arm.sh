# ARM: kernels cross-compiled, their tests under qemu
# Without -L: with a library prefix, every program with two threads hangs in qemu-user. Hence static programs.
build_arm() {
  [ -f build/arm/build.ninja ] ||
    meson setup build/arm --cross-file cross/aarch64-linux-gnu.ini -Dwerror=true -Dkernels_only=true --buildtype=release
  ninja -C build/arm
}
check "cross build for aarch64" build_arm &&
  counted "unit tests under qemu-aarch64" "$root/scripts/lib/unit_tests.py" build/arm --wrapper qemu-aarch64
