#!/usr/bin/env python3
"""Kvasir's tokenizer against Hugging Face's.

  tokenizer_oracle.py fixtures --model smollm2.gguf   writes ../text/data/*.json, which the C++ tests read
  tokenizer_oracle.py compare  --model MODEL.gguf --kvasir PROGRAM [--random 2000]
                                                     runs `kvasir tokenize` on every string, live

Needs: transformers, tokenizers, gguf. The reference is the Hugging Face tokenizer read from the
same GGUF file with one repair: transformers ignores the key `tokenizer.ggml.pre`, so the stage that
`smollm` means, Digits(individual_digits=True) before ByteLevel, is put back (for `qwen2` transformers
knows the right stages from the architecture). Without it about one
in five strings of `random_strings` differs, those with white space before a number: "  12" would be
" ", " 12" instead of "  ", "1", "2".
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

DATA = pathlib.Path(__file__).resolve().parent.parent / "text" / "data"

FIXED = ["", " ", "  a", "a\r\n\n b", "Ça va?", "नमस्ते", "👩‍👩‍👧", "\u2028\ua3e4", "1234567",
         "  12", "x\n\n1. one\n\n\n2. two", "²½Ⅻ٣ 三", "a\u180eb \u180e c", "don't I'LL we've 'S '",
         "<|im_start|>user\nhi<|im_end|>\n", "<|im_end|><|im_end|>", "<|im_<|im_end|>", "<|im_end|",
         "\t\tif x:\n\t\t\treturn 0\n", "a\u00a0b\u3000c\u0085d", "   ", "\n", "e\u0301 ffi ﬁ", "\ufeffbom"]
LARGE = [("x", 1048576), ("漢", 349525), (" ", 1048576), ("\n", 1048576), ("7", 1048576)]

RANGES = [(0x20, 0x7E), (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF),
          (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F),
          (0x2150, 0x218F), (0x2460, 0x24FF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0x10330, 0x1034A), (0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF), (0x07, 0x0D)]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<|im_", "  ", "\n\n",
            "\r\n", "\t", "'s", "'LL", " 12", "\u180e", "\u3000", "\u2028", "\ua3e4", "\u200d",
            "\u0085", "\u00a0", "\ufeff", "👩‍👩‍👧"]


def random_strings(count, longest, seed=1):
    rng = random.Random(seed)
    strings = []
    for _ in range(count):
        low, high = rng.choice(RANGES)
        text = ""
        for _ in range(rng.randint(1, longest)):
            draw = rng.random()
            if draw < 0.12:
                text += rng.choice(SPECIALS)
                continue
            if draw < 0.25:
                low, high = rng.choice(RANGES)
            text += chr(rng.randint(low, high))
            if rng.random() < 0.15:
                text += " "
            if rng.random() < 0.08:
                text += rng.choice("0123456789")
        strings.append(text)
    return strings


def byte_characters():
    """GPT-2's map, byte -> character."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


def load_hugging_face(model):
    import gguf
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer
    path = pathlib.Path(model).resolve()
    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    if gguf.GGUFReader(path).fields["tokenizer.ggml.pre"].contents() == "smollm":
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return tokenizer


def ids_of(tokenizer, text, parse):
    """Ids without BOS and EOS; parse: control tokens in the text count as such."""
    return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not parse)


def byte_ids(tokenizer):
    """For each byte the id of its token; None: the vocabulary has none."""
    vocabulary = tokenizer.get_vocab()
    return [vocabulary.get(c) for _, c in sorted(byte_characters().items())]


def period(ids):
    """The shortest list that repeated gives `ids`, which are those of one character repeated."""
    for length in range(1, 65):
        if len(ids) % length == 0 and ids == ids[:length] * (len(ids) // length):
            return ids[:length]
    raise ValueError("no period of at most 64 ids")


# --- fixtures ---------------------------------------------------------------------------------

def model_fixture(tokenizer):
    cases = []
    for text in FIXED + random_strings(240, 24):
        case = {"text": text, "ids": ids_of(tokenizer, text, True)}
        as_text = ids_of(tokenizer, text, False)
        if as_text != case["ids"]:
            case["ids_as_text"] = as_text
        cases.append(case)
    large = []
    for text, count in LARGE:
        ids = ids_of(tokenizer, text * count, True)
        large.append({"text": text, "count": count, "n_ids": len(ids), "period": period(ids)})
    return {"cases": cases, "large": large, "byte_ids": byte_ids(tokenizer)}


TRAINING_TEXT = """The river runs 12 miles, 1234 metres deep in 2024; we're sure it'll run on.
  if (river.depth() > 100) {\n    return 10 + 20;\n  }\n\n1. one\n\n2. two\n
Der Fluß fließt über Gärten. Река течёт мимо садов. 川は庭を流れる。 नदी बहती है।
don't can't won't they've I'm you'd she's\tand\tthe\r\n end of the endless river running """


# The expression of Qwen2's tokenizer.json.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def random_words(count, seed):
    """Words of few letters: their merges overlap, so that the order of merging matters."""
    rng = random.Random(seed)
    return ["".join(rng.choice("eenrthis ") for _ in range(rng.randint(4, 24))) for _ in range(count)]


def small_tokenizer(stages, ignore_merges):
    """Few merges, every byte, added tokens whose spellings overlap; trained here."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = byte_level
    trainer = trainers.BpeTrainer(vocab_size=520, show_progress=False,
                                  initial_alphabet=sorted(byte_characters().values()))
    trained.train_from_iterator([TRAINING_TEXT] * 3 + random_words(600, seed=5), trainer)
    model = json.loads(trained.to_str())["model"]
    vocabulary = dict(model["vocab"])
    # Words that no merge makes: found with ignore_merges only.
    for word in ["Ġzebra", "quartz"]:
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(m) for m in model["merges"]],
                                     ignore_merges=ignore_merges))
    if "qwen2" in stages:
        before = [pre_tokenizers.Split(Regex(QWEN2), behavior="isolated"),
                  pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    else:
        before = ([pre_tokenizers.Digits(individual_digits=True)] if "digits" in stages else []) + [byte_level]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(before)
    tokenizer.add_special_tokens(["<|end|>", "<|end|>less", "<|endless|>", "|end|"])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in ["[a", "[ab", "[abc]", "bc]d", "\n\n\n"]])
    merges = [" ".join(m) for m in model["merges"]]
    return tokenizer, merges


SMALL_TEXTS = ["", " ", "  12", "a 1234", "\n\n1", "zebra", " zebra", "quartz 1", " zebras", "running river",
               "<|end|>", "x<|end|>less<|endless|><|end|", "<|<|end|>", "[abc]d", "[abc", "[[ab]", "[ab[abc]",
               "\n\n\n\n\n", "don't", "川は\u180e庭", "\u2028 \u2028", "²½Ⅻ٣", "I'm  we'Ve", "a\u0085b\u00a0c"]


def small_fixture():
    result = {}
    for name, stages, ignore in [("gpt-2", (), False), ("smollm", ("digits",), False),
                                 ("qwen2", ("qwen2",), False),
                                 ("gpt-2 ignore_merges", (), True)]:
        tokenizer, merges = small_tokenizer(stages, ignore)
        cases = []
        for text in SMALL_TEXTS + random_strings(40, 12, seed=2) + random_words(60, seed=6):
            case = {"text": text}
            for key, as_text in [("ids", False), ("ids_as_text", True)]:
                tokenizer.encode_special_tokens = as_text
                case[key] = tokenizer.encode(text, add_special_tokens=False).ids
            case["pieces"] = [text[a:b] for _, (a, b) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
            cases.append(case)
        result[name] = cases
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    tokens = sorted(vocabulary, key=vocabulary.get)
    added = tokenizer.get_added_tokens_decoder()
    kinds = [1 if i not in added else 3 if added[i].special else 4 for i in range(len(tokens))]
    return {"tokens": tokens, "kinds": kinds, "merges": merges, "cases": result}


def utf8_fixture():
    """Python's decoder replaces maximal parts as Unicode recommends: [hex, first fault, text]."""
    rng = random.Random(3)
    parts = [b"a", b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
             b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xff", b"\xed\x9f\xbf", b"\xf4\x8f\xbf\xbf", b"\xef\xbf\xbd"]
    cases = [b"", *parts]
    for _ in range(300):
        joined = b""
        for _ in range(rng.randint(1, 6)):
            part = rng.choice(parts)
            joined += part[:rng.randint(1, len(part))] if rng.random() < 0.5 else part
            if rng.random() < 0.2:
                joined += bytes([rng.randrange(256)])
        cases.append(joined)
    result = []
    for case in cases:
        try:
            case.decode("utf-8")
            fault = None
        except UnicodeDecodeError as error:
            fault = error.start
        result.append([case.hex(), fault, case.decode("utf-8", errors="replace")])
    return result


def write_fixtures(model):
    DATA.mkdir(exist_ok=True)
    for name, content in [("smollm2.json", model_fixture(load_hugging_face(model))),
                          ("small_bpe.json", small_fixture()), ("utf8.json", utf8_fixture())]:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        (DATA / name).write_text(text + "\n", encoding="utf-8")
        print(f"{DATA / name}: {len(text.encode())} bytes")


# --- live comparison --------------------------------------------------------------------------

def run_kvasir(program, model, content, parse):
    """Ids, or the error text."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(content)
    try:
        command = [program, "tokenize", model, "--file", file.name, "--json"]
        done = subprocess.run(command + ([] if parse else ["--no-special"]), capture_output=True, timeout=120)
    finally:
        os.unlink(file.name)
    if done.returncode == 0:
        return json.loads(done.stdout)
    return f"exit {done.returncode}: {done.stderr.decode(errors='replace').strip()}"


def expected_cases(tokenizer, n_random):
    """(what, bytes, parse, ids or None where an error naming the byte is right)"""
    texts = FIXED + [text * count for text, count in LARGE] + random_strings(n_random, 40)
    cases = [(repr(text[:60]), text.encode(), parse, ids_of(tokenizer, text, parse))
             for text in texts for parse in (True, False)]
    for byte, token in enumerate(byte_ids(tokenizer)):
        cases.append((f"byte 0x{byte:02X}", bytes([byte]), True, None if token is None else [token]))
    return cases


def is_right(case, got):
    _, content, _, want = case
    if want is not None:
        return got == want
    return isinstance(got, str) and f"0x{content[0]:02X} at offset 0 " in got and got.startswith("exit 1:")


def compare(model, program, n_random):
    cases = expected_cases(load_hugging_face(model), n_random)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        answers = list(pool.map(lambda case: run_kvasir(program, model, case[1], case[2]), cases))
    wrong = 0
    for case, got in zip(cases, answers):
        if not is_right(case, got):
            wrong += 1
            if wrong <= 10:
                print(f"{case[0]} (parse {case[2]}): expected {str(case[3])[:200]}, got {str(got)[:200]}")
    print(f"figure: tokenizer: {len(cases)} comparisons with Hugging Face, {wrong} differ")
    print(f"checks: {len(cases) - wrong} passed, {wrong} failed")  # the line scripts/test reads
    return 1 if wrong or not cases else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fixtures = commands.add_parser("fixtures")
    live = commands.add_parser("compare")
    for command in (fixtures, live):
        command.add_argument("--model", required=True, help="a GGUF file with byte-level BPE")
    live.add_argument("--kvasir", required=True, help="the program")
    live.add_argument("--random", type=int, default=2000, help="how many random strings")
    arguments = parser.parse_args()
    if arguments.command == "fixtures":
        write_fixtures(arguments.model)
        return 0
    return compare(arguments.model, arguments.kvasir, arguments.random)


if __name__ == "__main__":
    sys.exit(main())
