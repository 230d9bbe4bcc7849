# The real model, its sum checked
check "fetch smollm2-135m-instruct" "$root/scripts/fetch-model" smollm2-135m-instruct
check "sum of smollm2-135m-instruct" "$root/scripts/fetch-model" --check smollm2-135m-instruct
