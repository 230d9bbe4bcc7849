#!/usr/bin/env python3
"""Golden greedy text of smollm2: what Hugging Face says on the dequantised float32 weights, what kvasir says.

  greedy_text.py make    --model FILE                    writes data/greedy_smollm2.json
  greedy_text.py compare --model FILE --kvasir PROGRAM   the live comparison (the fixture needs no torch)

kvasir quantises activations, so its logits differ a little from the reference's. Where the reference's two best
tokens are nearly equal, either is right; where they are MARGIN apart or more, only the best is. So the fixture
holds the margin of every step, and
1. given the golden tokens, kvasir's best token must be the golden one at every step with at least MARGIN;
2. running freely, `kvasir generate` must give the golden tokens up to the first step with less than MARGIN
   where it takes another token; a text without such a step must be equal to its end.
MARGIN: a mean KL of 0.003 means that the error of a logit has a standard deviation of about sqrt(2 * 0.003) =
0.08, the difference of two 0.11; 0.6 is more than five of these.
"""
import argparse
import json
import sys
from pathlib import Path

from checks import Kvasir, guarded

FIXTURE = Path(__file__).resolve().parent / "data" / "greedy_smollm2.json"
MARGIN = 0.6
STEPS = 48
PROMPTS = [  # text, raw?
    ("What is the capital of France?", False),
    ("Count from one to ten in words.", False),
    ("Write the multiplication table of 7 up to 70.", False),
    ("Name the seven days of the week.", False),
    ("The quick brown fox jumps over the lazy", True),
    ("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,", True),
    ("def fibonacci(n):\n    if n < 2:\n        return n\n", True),
]


def make(model_path):
    import torch

    import gguf_llama
    from tokenizer_oracle import load_hugging_face
    model, tokenizer = gguf_llama.read_gguf(model_path), load_hugging_face(model_path)
    cases = []
    for prompt, raw in PROMPTS:
        text = prompt if raw else tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False)
        ids = tokenizer.encode(text, add_special_tokens=False)
        with torch.no_grad():
            whole = model.generate(torch.tensor([ids]), max_new_tokens=STEPS, do_sample=False,
                                   eos_token_id=tokenizer.eos_token_id, pad_token_id=0)[0].tolist()
        tokens = whole[len(ids):]
        logits = gguf_llama.logits_of(model, whole[:-1])[len(ids) - 1:]  # one pass without a cache, for the margins
        best = torch.from_numpy(logits).topk(2).values
        margins = (best[:, 0] - best[:, 1]).tolist()
        if logits.argmax(-1).tolist() != tokens:
            raise ValueError(f"{prompt!r}: generate() and one full pass disagree")
        ended = tokens[-1] == tokenizer.eos_token_id
        cases.append({"prompt": prompt, "raw": raw, "prompt_ids": ids, "tokens": tokens, "finish_reason": "stop" if ended else "length",
                      "margins": [round(m, 4) for m in margins],
                      "text": tokenizer.decode(tokens[:-1] if ended else tokens, skip_special_tokens=False,
                                               clean_up_tokenization_spaces=False)})
    FIXTURE.parent.mkdir(exist_ok=True)
    FIXTURE.write_text(json.dumps({"steps": STEPS, "cases": cases}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    for case in cases:
        sure = sum(m >= MARGIN for m in case["margins"])
        print(f"{sure} of {len(case['tokens'])} steps have {MARGIN} or more: {case['prompt']!r} -> {case['text']!r}")


def compare_forced(checks, kvasir, model, case):
    ids = case["prompt_ids"] + case["tokens"][:-1]
    best = kvasir.logits(model, [ids])[0][len(case["prompt_ids"]) - 1:].argmax(-1).tolist()
    steps = list(zip(best, case["tokens"], case["margins"]))
    wrong = [(i, got, want, margin) for i, (got, want, margin) in enumerate(steps) if got != want and margin >= MARGIN]
    sure = sum(margin >= MARGIN for margin in case["margins"])
    checks.that(sure > 0 and not wrong, f"{case['prompt']!r}: golden token at each of {sure} steps with a margin"
                + (f"; wrong (step, got, expected, margin): {wrong[:5]}" if wrong else ""))
    return sum(got == want for got, want, _ in steps), len(steps)


def compare_free(checks, kvasir, model, case, steps):
    """Whether the whole text came out as the reference has it."""
    raw = ["--raw"] if case["raw"] else []
    answer = kvasir.json("generate", model, "--prompt", case["prompt"], *raw, "--temperature", 0,
                         "--max-tokens", steps, "--json")
    # The token that ends the answer may or may not be listed by the program: only what comes before it is compared.
    end = case["finish_reason"] == "stop"
    expected = case["tokens"][:-1] if end else case["tokens"]
    got = answer["tokens"][:-1] if end and answer["tokens"] == case["tokens"] else answer["tokens"]
    differ = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
    if got == expected:
        checks.equal((answer["text"], answer["finish_reason"]), (case["text"], case["finish_reason"]),
                     f"{case['prompt']!r}: whole text and finish reason")
        return True
    margin = case["margins"][differ]
    checks.that(margin < MARGIN, f"{case['prompt']!r}: {differ} golden tokens, then another at a margin of {margin}")
    return False


def compare(checks, arguments):
    kvasir = Kvasir(arguments.kvasir)
    fixture = json.loads(FIXTURE.read_text(encoding="utf-8"))
    same = total = whole = 0
    for case in fixture["cases"]:
        a, b = compare_forced(checks, kvasir, arguments.model, case)
        same, total = same + a, total + b
        whole += compare_free(checks, kvasir, arguments.model, case, fixture["steps"])
    print(f"figure: greedy: the golden token at {same} of {total} steps; {whole} of {len(fixture['cases'])} texts equal to the end")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "compare"])
    parser.add_argument("--model", required=True, help="smollm2-135m-instruct.gguf")
    parser.add_argument("--kvasir", help="the program")
    parsed = parser.parse_args()
    if parsed.command == "make":
        make(parsed.model)
        sys.exit(0)
    if not parsed.kvasir:
        parser.error("compare needs --kvasir")
    sys.exit(guarded(lambda checks: compare(checks, parsed)))
