#include "core/text/sentencepiece_tokenizer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/byte_level.h"
#include "core/text/utf8.h"

namespace kvasir {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, how pieces spell a space

/// Every byte may become the three of kSpace, and places in the text are int32.
constexpr size_t kMostTextBytes = size_t{1} << 29;

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(from, at), text.size());
    result.append(text.substr(at, next - at));
    if (next == text.size()) break;
    result.append(to);
    at = next + from.size();
  }
  return result;
}

/// Bytes of the character that begins with `lead`, in valid UTF-8.
int32_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

/// Where byte `offset` of the text with its spaces replaced was before.
size_t original_offset(std::string_view text, size_t offset) {
  size_t at = 0;
  for (size_t replaced_at = 0; at < text.size(); ++at) {
    replaced_at += text[at] == ' ' ? kSpace.size() : 1;
    if (replaced_at > offset) break;
  }
  return at;
}

}  // namespace

/// The merges of one text at a time; memory is used again from text to text. O(n log n), no
/// recursion: a heap of candidates over a linked list of symbols, at most two candidates a symbol.
class SentencePieceTokenizer::Merging {
 public:
  explicit Merging(const SentencePieceTokenizer& tokenizer) : tokenizer_(tokenizer) {}

  struct Symbol {
    int32_t offset = 0;
    int32_t size = 0;  // bytes; 0: merged into its left neighbour
    int32_t previous = -1;
    int32_t next = -1;
  };

  /// Merges `text` as far as it goes and calls use(piece) for what is left, in order.
  template <class Use>
  Status apply(std::string_view text, const Use& use) {
    text_ = text;
    cut_characters();
    merge_all();
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) {
      if (auto s = use(piece(at(i))); !s) return s;
    }
    return {};
  }

 private:
  struct Candidate {
    float score;
    int32_t left;  // index of the left symbol
    int32_t size;  // of both together: tells whether either has been merged since
  };
  /// Order of a heap whose top is the merge to do next.
  static bool is_later(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  }

  Symbol& at(int32_t index) { return symbols_[static_cast<size_t>(index)]; }
  std::string_view piece(const Symbol& symbol) const {
    return text_.substr(static_cast<size_t>(symbol.offset), static_cast<size_t>(symbol.size));
  }

  void cut_characters() {
    symbols_.clear();
    size_t offset = 0;
    const auto add = [&](int32_t size) {
      const auto index = static_cast<int32_t>(symbols_.size());
      symbols_.push_back({static_cast<int32_t>(offset), size, index - 1, index + 1});
      offset += static_cast<size_t>(size);
    };
    while (offset < text_.size()) {
      const auto fault = find_invalid_utf8(text_.substr(offset));
      const size_t end = fault ? offset + *fault : text_.size();
      while (offset < end) add(character_bytes(text_[offset]));
      if (fault) add(1);
    }
    if (!symbols_.empty()) symbols_.back().next = -1;
  }

  bool add_candidate(int32_t left) {
    if (left < 0 || at(left).next < 0) return false;
    const int32_t size = at(left).size + at(at(left).next).size;
    if (static_cast<size_t>(size) > tokenizer_.longest_bytes_) return false;
    const TokenId id = tokenizer_.find(
        text_.substr(static_cast<size_t>(at(left).offset), static_cast<size_t>(size)));
    if (id < 0) return false;
    heap_.push_back({tokenizer_.vocabulary_.scores[static_cast<size_t>(id)], left, size});
    return true;
  }
  void consider(int32_t left) {
    if (add_candidate(left)) std::push_heap(heap_.begin(), heap_.end(), is_later);
  }

  void merge_all() {
    heap_.clear();
    for (int32_t i = 0; i < static_cast<int32_t>(symbols_.size()); ++i) add_candidate(i);
    std::make_heap(heap_.begin(), heap_.end(), is_later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), is_later);
      const Candidate best = heap_.back();
      heap_.pop_back();
      Symbol& left = at(best.left);
      if (left.size == 0 || left.next < 0) continue;
      Symbol& right = at(left.next);
      // Symbols only grow: the same size as then means the same two symbols.
      if (left.size + right.size != best.size) continue;
      left.size = best.size;
      right.size = 0;
      left.next = right.next;
      if (left.next >= 0) at(left.next).previous = best.left;
      consider(left.previous);
      consider(best.left);
    }
  }

  const SentencePieceTokenizer& tokenizer_;
  std::string_view text_;
  std::vector<Symbol> symbols_;  // 16 bytes a character
  std::vector<Candidate> heap_;  // 12 bytes each
};

/// One call of encode.
struct SentencePieceTokenizer::Encoding {
  std::string_view text;
  std::string spaced;    // the text with its spaces replaced
  std::string prefixed;  // a plain part of it with a space before
  std::vector<TokenId> ids;
  Merging merging;
};

Result<std::unique_ptr<SentencePieceTokenizer>> SentencePieceTokenizer::create(
    Vocabulary vocabulary) {
  std::unique_ptr<SentencePieceTokenizer> t(new SentencePieceTokenizer());
  t->vocabulary_ = std::move(vocabulary);
  if (t->vocabulary_.scores.empty()) {
    return make_error(ErrorCode::corrupt_file,
                      "key 'tokenizer.ggml.scores' is missing: without it there is no telling "
                      "which merges come first");
  }
  if (auto s = t->read_tokens(); !s) return std::move(s).error();
  return t;
}

Status SentencePieceTokenizer::read_tokens() {
  const size_t n = vocabulary_.tokens.size();
  bytes_.resize(n);
  by_text_.reserve(n);
  byte_ids_.fill(-1);
  // Spellings as they stand in a text whose spaces are replaced: converters write user-defined runs
  // of spaces as spaces.
  std::vector<std::string> spelled(n);
  std::vector<MarkedTokens::Spelling> added;
  std::vector<MarkedTokens::Spelling> added_and_control;
  std::unordered_map<std::string_view, TokenId> marked;
  for (size_t i = 0; i < n; ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& text = vocabulary_.tokens[i];
    const TokenKind kind = vocabulary_.kinds[i];
    if (kind == TokenKind::byte) {
      // Vocabulary::read has checked the spelling.
      if (const auto byte = byte_of_token(text)) {
        bytes_[i] = static_cast<char>(*byte);
        if (byte_ids_[*byte] < 0) byte_ids_[*byte] = id;
      }
      continue;
    }
    const bool is_marked = kind == TokenKind::user_defined || kind == TokenKind::control;
    if (text.empty() || (!is_marked && kind != TokenKind::normal)) continue;
    if (kind != TokenKind::control) bytes_[i] = replaced(text, kSpace, " ");
    if (is_marked) spelled[i] = replaced(text, " ", kSpace);
    const auto [at, is_new] =
        is_marked ? marked.try_emplace(spelled[i], id) : by_text_.try_emplace(text, id);
    if (!is_new) {
      return make_error(ErrorCode::corrupt_file, "entries {} and {} of key '{}' are both '{}'",
                        at->second, id, kTokens, text);
    }
    if (kind == TokenKind::user_defined) added.push_back({spelled[i], id});
    if (is_marked) added_and_control.push_back({spelled[i], id});
    if (!is_marked) longest_bytes_ = std::max(longest_bytes_, text.size());
  }
  added_ = MarkedTokens(added);
  added_and_control_ = MarkedTokens(added_and_control);
  return {};
}

TokenId SentencePieceTokenizer::find(std::string_view piece) const {
  const auto found = by_text_.find(piece);
  return found == by_text_.end() ? -1 : found->second;
}

Status SentencePieceTokenizer::encode_plain(size_t begin, size_t end, Encoding& encoding) const {
  if (begin == end) return {};
  const std::string_view plain = std::string_view(encoding.spaced).substr(begin, end - begin);
  const size_t prefix = vocabulary_.adds_space_prefix ? kSpace.size() : 0;
  if (prefix > 0) encoding.prefixed = std::string(kSpace).append(plain);
  const std::string_view part = prefix > 0 ? encoding.prefixed : plain;
  return encoding.merging.apply(part, [&](std::string_view piece) -> Status {
    const TokenId id = find(piece);
    if (id >= 0) {
      encoding.ids.push_back(id);
      return {};
    }
    for (const char& c : piece) {
      const TokenId byte_id = byte_ids_[static_cast<unsigned char>(c)];
      if (byte_id < 0) {
        const auto in_part = static_cast<size_t>(&c - part.data());
        const size_t at =
            original_offset(encoding.text, begin + std::max(in_part, prefix) - prefix);
        return make_error(ErrorCode::invalid_argument,
                          "the byte 0x{:02X} at offset {} of the text has no token in this model's "
                          "vocabulary",
                          static_cast<unsigned char>(encoding.text[at]), at);
      }
      encoding.ids.push_back(byte_id);
    }
    return {};
  });
}

Result<std::vector<TokenId>> SentencePieceTokenizer::encode(std::string_view text,
                                                            SpecialTokens special) const {
  if (text.size() > kMostTextBytes) {
    return make_error(ErrorCode::limit_exceeded, "a text of {} bytes is longer than the {} allowed",
                      text.size(), kMostTextBytes);
  }
  const MarkedTokens& marked = special == SpecialTokens::parse ? added_and_control_ : added_;
  Encoding encoding{text, replaced(text, " ", kSpace), {}, {}, Merging(*this)};
  size_t at = 0;
  for (const auto& match : marked.find_all(encoding.spaced)) {
    if (auto s = encode_plain(at, match.offset, encoding); !s) return std::move(s).error();
    encoding.ids.push_back(match.id);
    at = size_t{match.offset} + match.length;
  }
  if (auto s = encode_plain(at, encoding.spaced.size(), encoding); !s) return std::move(s).error();
  return std::move(encoding.ids);
}

std::string SentencePieceTokenizer::description() const {
  return fmt::format("{} / SentencePiece", vocabulary_.model);
}

}  // namespace kvasir
