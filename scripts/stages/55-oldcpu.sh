# Old x86-64 CPUs, emulated: the same program answers with what they have
counted "answers on old CPUs" "$root/tests/cli/old_cpu.py" --kvasir build/gcc/cli/kvasir
