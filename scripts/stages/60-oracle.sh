# Outside references: Hugging Face transformers, tokenizers, gguf, NumPy
oracle=$root/tests/oracle
python_environment() { "$root/scripts/lib/python_environment" "$oracle/requirements.txt"; }
check "Python environment" python_environment || return 0
python=$(python_environment 2>/dev/null | tail -n 1)
kvasir=$root/build/gcc/cli/kvasir
model=$("$root/scripts/fetch-model" --path smollm2-135m-instruct)
counted "tiny llama logits" "$python" "$oracle/llama_logits_oracle.py" --kvasir "$kvasir"
counted "tiny qwen2 and gemma3 logits" "$python" "$oracle/family_logits_oracle.py" --kvasir "$kvasir"
counted "smollm2 agreement" "$python" "$oracle/agreement.py" --kvasir "$kvasir" --model "$model"
counted "golden greedy text" "$python" "$oracle/greedy_text.py" compare --kvasir "$kvasir" --model "$model"
counted "tokenizer" "$python" "$oracle/tokenizer_oracle.py" compare --kvasir "$kvasir" --model "$model" --random 600
gemma=$("$root/scripts/fetch-model" --path gemma-3-270m)
qwen=$("$root/scripts/fetch-model" --path qwen2.5-coder-0.5b-instruct)
counted "tokenizer of gemma" "$python" "$oracle/sentencepiece_oracle.py" compare --kvasir "$kvasir" --model "$gemma" --random 300
counted "tokenizer of qwen" "$python" "$oracle/tokenizer_oracle.py" compare --kvasir "$kvasir" --model "$qwen" --random 100
