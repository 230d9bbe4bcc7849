# Outside references: Hugging Face transformers, tokenizers, gguf, NumPy
oracle=$root/tests/oracle
python_environment() { "$root/scripts/lib/python_environment" "$oracle/requirements.txt"; }
check "Python environment" python_environment || return 0
python=$(python_environment 2>/dev/null | tail -n 1)
kvasir=$root/build/gcc/cli/kvasir
model=$("$root/scripts/fetch-model" --path smollm2-135m-instruct)
counted "tiny llama logits" "$python" "$oracle/llama_logits_oracle.py" --kvasir "$kvasir"
counted "smollm2 agreement" "$python" "$oracle/agreement.py" --kvasir "$kvasir" --model "$model"
counted "golden greedy text" "$python" "$oracle/greedy_text.py" compare --kvasir "$kvasir" --model "$model"
counted "tokenizer" "$python" "$oracle/tokenizer_oracle.py" compare --kvasir "$kvasir" --model "$model" --random 600
