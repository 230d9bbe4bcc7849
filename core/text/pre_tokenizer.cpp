#include "core/text/pre_tokenizer.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/error.h"
#include "core/text/utf8.h"

namespace kvasir {
namespace {

// PCRE2's \s matches U+180E, which Unicode's White_Space does not hold: [\p{Z}\t-\r\x{85}] is that
// property spelled out.
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d)"
                              R"(| ?\p{L}+| ?\p{N}+| ?[^\p{Z}\t-\r\x{85}\p{L}\p{N}]+)"
                              R"(|[\p{Z}\t-\r\x{85}]+(?![^\p{Z}\t-\r\x{85}])|[\p{Z}\t-\r\x{85}]+)";
// A digit at a time; a letter run takes one character before it that is no letter, digit or line end;
// runs of other characters take line ends behind them.
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\p{Z}\t-\r\x{85}\p{L}\p{N}]+[\r\n]*|[\p{Z}\t-\r\x{85}]*[\r\n]+)"
    R"(|[\p{Z}\t-\r\x{85}]+(?![^\p{Z}\t-\r\x{85}])|[\p{Z}\t-\r\x{85}]+)";
constexpr const char* kEveryNumber = R"(\p{N})";  // Nd, Nl and No, as Digits has them

struct Named {
  std::string_view name;
  std::array<const char*, 2> stages;  // applied in order; null: none
};

/// The cuts of the tokenizers these names stand for: "gpt-2" is Hugging Face's ByteLevel with its
/// expression; "smollm" is Digits(individual_digits) before it, so "  12" is "  ", "1", "2", where
/// gpt-2 has " ", " 12". (transformers, reading a GGUF file, leaves the first stage out.)
constexpr Named kKnown[] = {
    {"gpt-2", {kGpt2, nullptr}},
    {"qwen2", {kQwen2, nullptr}},
    {"smollm", {kEveryNumber, kGpt2}},
};

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
  for (const auto& entry : kKnown) {
    names += names.empty() ? "" : ", ";
    names += entry.name;
    if (entry.name != name) continue;
    std::unique_ptr<PreTokenizer> result(new PreTokenizer());
    for (const char* pattern : entry.stages) {
      if (pattern == nullptr) continue;
      int error = 0;
      PCRE2_SIZE offset = 0;
      Expression stage;
      stage.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &offset,
                                     nullptr));
      if (!stage.code) {
        return make_error(ErrorCode::internal,
                          "pre-tokenizer '{}' does not compile (error {} at {})", name, error,
                          offset);
      }
      // Without JIT (some systems forbid it) matching is slower, and as right.
      (void)pcre2_jit_compile(stage.code.get(), PCRE2_JIT_COMPLETE);
      result->stages_.push_back(std::move(stage));
    }
    return result;
  }
  if (name.empty()) {
    return make_error(
        ErrorCode::corrupt_file,
        "key 'tokenizer.ggml.pre' is missing or empty: without it there is no telling "
        "how text is cut (known: {})",
        names);
  }
  return make_error(ErrorCode::unsupported,
                    "pre-tokenizer '{}' (key 'tokenizer.ggml.pre') is not supported; known: {}",
                    name, names);
}

/// One call of split: match data belongs to a call, so that calls may run side by side.
class PreTokenizer::Cut {
 public:
  Cut(const std::vector<Expression>& stages, std::string_view text, const Use& use)
      : stages_(stages), text_(text), use_(use) {}

  Status prepare() {
    for (const auto& stage : stages_) {
      matches_.emplace_back(pcre2_match_data_create_from_pattern(stage.code.get(), nullptr));
      if (!matches_.back())
        return make_error(ErrorCode::out_of_memory, "no memory to match an expression");
    }
    return {};
  }

  /// Applies the expressions from `stage` on to `part`, which is valid UTF-8. Depth: the number of
  /// stages.
  Status apply(std::string_view part, size_t stage) {
    if (stage == stages_.size()) return part.empty() ? Status() : use_(part);
    pcre2_match_data* match = matches_[stage].get();
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match);
    size_t at = 0;
    while (at < part.size()) {
      const int found =
          pcre2_match(stages_[stage].code.get(), reinterpret_cast<PCRE2_SPTR>(part.data()),
                      part.size(), at, PCRE2_NO_UTF_CHECK, match, nullptr);
      if (found == PCRE2_ERROR_NOMATCH) break;
      const size_t begin = found > 0 ? bounds[0] : at;
      const size_t end = found > 0 ? bounds[1] : at;
      if (end <= begin || begin < at) {
        return make_error(ErrorCode::internal, "cutting the text failed at byte {} (error {})",
                          static_cast<size_t>(part.data() - text_.data()) + at, found);
      }
      if (auto s = apply(part.substr(at, begin - at), stage + 1); !s) return s;
      if (auto s = apply(part.substr(begin, end - begin), stage + 1); !s) return s;
      at = end;
    }
    return apply(part.substr(at), stage + 1);
  }

 private:
  const std::vector<Expression>& stages_;
  std::string_view text_;
  const Use& use_;
  std::vector<std::unique_ptr<pcre2_match_data, FreeMatch>> matches_;
};

Status PreTokenizer::split(std::string_view text, const Use& use) const {
  Cut cut(stages_, text, use);
  if (auto s = cut.prepare(); !s) return s;
  while (!text.empty()) {
    const size_t valid = find_invalid_utf8(text).value_or(text.size());
    if (auto s = cut.apply(text.substr(0, valid), 0); !s) return s;
    text.remove_prefix(valid);
    size_t invalid = 0;
    // No character is longer than 4 bytes, so whether one begins here is known from 4.
    while (invalid < text.size() && find_invalid_utf8(text.substr(invalid, 4)) == size_t{0})
      ++invalid;
    if (invalid > 0) {
      if (auto s = use(text.substr(0, invalid)); !s) return s;
    }
    text.remove_prefix(invalid);
  }
  return {};
}

}  // namespace kvasir
