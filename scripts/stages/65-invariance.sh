# One prompt, one answer: threads, chunks and instruction sets change no bit
counted "invariance" "$root/tests/oracle/invariance.py" --kvasir build/gcc/cli/kvasir --model smollm2-135m-instruct
