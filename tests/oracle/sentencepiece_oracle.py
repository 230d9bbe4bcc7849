#!/usr/bin/env python3
"""Kvasir's SentencePiece tokenizer against the sentencepiece library and Hugging Face's.

  sentencepiece_oracle.py fixtures                writes ../text/data/small_sentencepiece.json, which the C++ tests read
  sentencepiece_oracle.py compare --model gemma-3-270m.gguf --kvasir PROGRAM [--random 600]
                                                  runs `kvasir tokenize` on every string, live

Needs: sentencepiece, protobuf, transformers, gguf. `compare` puts the vocabulary of the GGUF file back into a
SentencePiece model (spaces in user-defined pieces, which the converter writes as spaces, are U+2581 again): that library
is the reference for every string. Hugging Face's tokenizer, read from the same file by transformers, must agree wherever
no two spaces or U+2581 meet: transformers gives the pieces of several spaces their score of -1000 as merges instead of
adding them, so that it has "a", "  ", " the" where the library and Hugging Face's own file for Gemma have "a", "   ", "the".
"""
import argparse
import io
import json
import pathlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tokenizer_oracle import DATA, FIXED, LARGE, TRAINING_TEXT, random_strings, random_words, run_kvasir

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
GEMMA = ["<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n", "<bos>a<eos>", "<unused99>", "a" + " " * 40 + "b",
         "\t" * 35 + "x", "\n" * 64, " the  the   the    the", "<b>bold</b> <table><tr><td> 1</td></tr>", "<0x0A>", "<unk>",
         "[multimodal]", "def f(x):\n    if x:\n        return  1\n"]


# --- fixtures ---------------------------------------------------------------------------------

def train(prefix):
    """A small model: few merges that overlap, bytes for what it has no piece for, user-defined pieces that overlap."""
    lines = (TRAINING_TEXT + "\n" + "\n".join(random_words(600, seed=5))).split("\n")
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=output, model_type="bpe", vocab_size=640, byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", remove_extra_whitespaces=False,
        add_dummy_prefix=prefix, num_threads=1, minloglevel=2,
        user_defined_symbols=["[a", "[ab", "[abc]", "bc]d", "\n", "\n\n", SPACE * 2, SPACE * 3])
    return sentencepiece.SentencePieceProcessor(model_proto=output.getvalue())


SMALL_TEXTS = ["", " ", "  12", "a   b", "a    b     c", "running river", "\n\n\n", "[abc]d", "[abc", "[[ab]", "[ab[abc]",
               "<s>", "</s>", "<0x41>", "<unk>", "漢字 of the river", "the the  the", "\u2581a", "\ue000\u0001\x7f",
               "e\u0301 \u00a0\u3000", "river" * 40]


def fixtures():
    result = {}
    for name, prefix in (("plain", False), ("prefixed", True)):
        processor = train(prefix)
        n = processor.get_piece_size()
        kinds = [UNKNOWN if processor.is_unknown(i) else CONTROL if processor.is_control(i) else
                 BYTE if processor.is_byte(i) else NORMAL for i in range(n)]
        tokens = [processor.id_to_piece(i) for i in range(n)]
        proto = sentencepiece_model_pb2.ModelProto.FromString(processor.serialized_model_proto())
        kinds = [USER_DEFINED if piece.type == USER_DEFINED else kind for piece, kind in zip(proto.pieces, kinds)]
        texts = SMALL_TEXTS + random_strings(60, 12, seed=2) + random_words(80, seed=6)
        if prefix:  # the library puts a space before the whole text only; kvasir and llama.cpp before every plain run
            texts = [t for t in texts if t and not re.search(r"\n|  |\[|\]d|\u2581", t) and not t.startswith(" ")]
        result[name] = {"tokens": tokens, "kinds": kinds, "scores": [processor.get_score(i) for i in range(n)],
                        "cases": [[text, processor.encode(text)] for text in texts]}
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    (DATA / "small_sentencepiece.json").write_text(text + "\n", encoding="utf-8")
    print(f"small_sentencepiece.json: {len(text.encode())} bytes, {[len(r['cases']) for r in result.values()]} cases")


# --- live comparison --------------------------------------------------------------------------

def library_of(model):
    """A SentencePiece processor with the vocabulary of a GGUF file."""
    import gguf
    fields = gguf.GGUFReader(model).fields
    proto = sentencepiece_model_pb2.ModelProto()
    rows = [fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "scores", "token_type")]
    unknown = fields["tokenizer.ggml.unknown_token_id"].contents()
    for i, (token, score, kind) in enumerate(zip(*rows)):
        kind = UNKNOWN if i == unknown else kind
        proto.pieces.add(piece=token.replace(" ", SPACE) if kind == USER_DEFINED else token, score=score, type=kind)
    proto.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.unk_id = unknown
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())


def load_hugging_face(model):
    from transformers import AutoTokenizer
    path = pathlib.Path(model).resolve()
    return AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)


def compare(model, program, n_random):
    library, hugging_face = library_of(model), load_hugging_face(model)
    bos = hugging_face.bos_token_id
    control = re.compile("|".join(map(re.escape, hugging_face.all_special_tokens)) + r"|<unused\d+>|<(start|end)_of_turn>")
    cases = []  # (what, text, parse, ids)
    for text in FIXED + GEMMA + [t * n for t, n in LARGE] + random_strings(n_random, 40):
        cases.append(("sentencepiece", text, False, library.encode(text)))
        # The library knows no markup; where there is none, Hugging Face's must say the same with it.
        if len(text) < 10000 and not re.search(f"[ {SPACE}]{{2}}", text):
            ids = hugging_face.encode(text, add_special_tokens=False)
            cases.append(("Hugging Face", text, True, [bos, *ids]))
        elif not control.search(text):
            cases.append(("sentencepiece", text, True, [bos, *library.encode(text)]))
    with ThreadPoolExecutor(max_workers=2) as pool:
        answers = list(pool.map(lambda case: run_kvasir(program, model, case[1].encode(), case[2]), cases))
    wrong = 0
    for (what, text, parse, want), got in zip(cases, answers):
        if got != want:
            wrong += 1
            if wrong <= 10:
                print(f"{what} {text[:60]!r} (parse {parse}): expected {str(want)[:200]}, got {str(got)[:200]}")
    for name in ("sentencepiece", "Hugging Face"):
        print(f"figure: SentencePiece tokenizer: {sum(c[0] == name for c in cases)} comparisons with {name}")
    print(f"checks: {len(cases) - wrong} passed, {wrong} failed")  # the line scripts/test reads
    return 1 if wrong or not cases else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fixtures")
    live = commands.add_parser("compare")
    live.add_argument("--model", required=True, help="a GGUF file whose tokenizer model is 'llama'")
    live.add_argument("--kvasir", required=True, help="the program")
    live.add_argument("--random", type=int, default=600, help="how many random strings")
    arguments = parser.parse_args()
    if arguments.command == "fixtures":
        fixtures()
        return 0
    return compare(arguments.model, arguments.kvasir, arguments.random)


if __name__ == "__main__":
    sys.exit(main())
