# The real models, their sums checked
for model in smollm2-135m-instruct gemma-3-270m qwen2.5-coder-0.5b-instruct; do
  check "fetch $model" "$root/scripts/fetch-model" "$model"
  check "sum of $model" "$root/scripts/fetch-model" --check "$model"
done
