#include "core/text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/error.h"
#include "core/text/utf8.h"

namespace kvasir {
namespace {

// PCRE2's \s matches U+180E, which Unicode's White_Space does not hold: [\p{Z}\t-\r\x{85}] is that
// property spelled out.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d)"
    R"(| ?\p{L}+| ?\p{N}+| ?[^\p{Z}\t-\r\x{85}\p{L}\p{N}]+)"
    R"(|[\p{Z}\t-\r\x{85}]+(?![^\p{Z}\t-\r\x{85}])|[\p{Z}\t-\r\x{85}]+)";
constexpr const char* kEveryDigit = R"(\p{N})";

struct Named {
  std::string_view name;
  std::vector<const char*> stages;
};

/// The cuts of the tokenizers these names stand for: gpt-2 is ByteLevel with its expression,
/// smollm isolates every digit first (Digits, individual_digits).
const std::vector<Named>& known() {
  static const std::vector<Named> all = {
      {"gpt-2", {kGpt2}},
      {"smollm", {kEveryDigit, kGpt2}},
  };
  return all;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

}  // namespace

struct PreTokenizer::Expression {
  std::unique_ptr<pcre2_code, FreeCode> code;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;

Result<std::unique_ptr<PreTokenizer>> PreTokenizer::named(std::string_view name) {
  std::string names;
  for (const auto& entry : known()) {
    names += names.empty() ? "" : ", ";
    names += entry.name;
    if (entry.name != name) continue;
    std::unique_ptr<PreTokenizer> result(new PreTokenizer());
    for (const char* pattern : entry.stages) {
      int error = 0;
      PCRE2_SIZE offset = 0;
      Expression stage;
      stage.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &offset,
                                     nullptr));
      if (!stage.code) {
        return make_error(ErrorCode::internal, "pre-tokenizer '{}' does not compile (error {} at {})",
                          name, error, offset);
      }
      // Without JIT (some systems forbid it) matching is slower, and as right.
      (void)pcre2_jit_compile(stage.code.get(), PCRE2_JIT_COMPLETE);
      result->stages_.push_back(std::move(stage));
    }
    return result;
  }
  return make_error(ErrorCode::unsupported,
                    "pre-tokenizer '{}' (key 'tokenizer.ggml.pre') is not supported; known: {}", name,
                    names);
}

Status PreTokenizer::split_stage(std::string_view text, size_t stage,
                                 const std::function<void(std::string_view)>& use) const {
  if (stage == stages_.size()) {
    use(text);
    return {};
  }
  const pcre2_code* code = stages_[stage].code.get();
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(code, nullptr));
  if (!match) return make_error(ErrorCode::out_of_memory, "no memory to match an expression");
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
  size_t at = 0;
  while (at < text.size()) {
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0 || bounds[1] <= at) {
      return make_error(ErrorCode::internal, "cutting the text failed at byte {} (error {})", at,
                        found);
    }
    if (bounds[0] > at) {
      if (auto s = split_stage(text.substr(at, bounds[0] - at), stage + 1, use); !s) return s;
    }
    if (auto s = split_stage(text.substr(bounds[0], bounds[1] - bounds[0]), stage + 1, use); !s)
      return s;
    at = bounds[1];
  }
  if (at < text.size()) return split_stage(text.substr(at), stage + 1, use);
  return {};
}

Status PreTokenizer::split(std::string_view text,
                           const std::function<void(std::string_view)>& use) const {
  while (!text.empty()) {
    const size_t valid = find_invalid_utf8(text).value_or(text.size());
    if (valid > 0) {
      if (auto s = split_stage(text.substr(0, valid), 0, use); !s) return s;
      text.remove_prefix(valid);
    }
    size_t invalid = 0;
    while (invalid < text.size() && find_invalid_utf8(text.substr(invalid, 4)) == size_t{0}) ++invalid;
    if (invalid > 0) use(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
  return {};
}

}  // namespace kvasir
