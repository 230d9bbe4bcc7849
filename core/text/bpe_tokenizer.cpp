#include "core/text/bpe_tokenizer.h"

#include "core/base/error.h"
#include "core/text/byte_level.h"

namespace kvasir {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kMerges = "tokenizer.ggml.merges";

/// One piece is at most the whole text; symbols, heap and ids need at most 44 bytes a byte.
constexpr size_t kMostTextBytes = size_t{1} << 30;

}  // namespace

struct BpeTokenizer::Encoding {
  std::string_view text;
  std::vector<TokenId> ids;
  std::vector<TokenId> symbols;
  BpeMerges::Workspace workspace;
};

Result<std::unique_ptr<BpeTokenizer>> BpeTokenizer::create(Vocabulary vocabulary) {
  std::unique_ptr<BpeTokenizer> t(new BpeTokenizer());
  t->vocabulary_ = std::move(vocabulary);
  auto pre = PreTokenizer::named(t->vocabulary_.pre);
  if (!pre) return std::move(pre).error();
  t->pre_tokenizer_ = std::move(*pre);
  if (auto s = t->read_tokens(); !s) return std::move(s).error();
  if (auto s = t->read_merges(); !s) return std::move(s).error();
  return t;
}

Status BpeTokenizer::read_token(TokenId id) {
  const auto index = static_cast<size_t>(id);
  const std::string& text = vocabulary_.tokens[index];
  switch (vocabulary_.kinds[index]) {
    case TokenKind::normal: {
      auto bytes = spelled_bytes(text);
      if (!bytes) {
        return make_error(ErrorCode::corrupt_file,
                          "entry {} of key '{}' ('{}') holds a character that spells no byte", id,
                          kTokens, text);
      }
      bytes_[index] = std::move(*bytes);
      break;
    }
    case TokenKind::byte:
      // Vocabulary::read has checked the spelling.
      if (const auto byte = byte_of_token(text)) bytes_[index] = static_cast<char>(*byte);
      break;
    case TokenKind::user_defined:
      bytes_[index] = text;
      break;
    case TokenKind::control:
    case TokenKind::unknown:
    case TokenKind::unused:
      break;
  }
  return {};
}

Status BpeTokenizer::read_tokens() {
  const size_t n = vocabulary_.tokens.size();
  bytes_.resize(n);
  by_bytes_.reserve(n);
  byte_ids_.fill(-1);
  std::vector<MarkedTokens::Spelling> added;
  std::vector<MarkedTokens::Spelling> added_and_control;
  std::unordered_map<std::string_view, TokenId> marked;
  for (size_t i = 0; i < n; ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = vocabulary_.tokens[i];
    if (auto s = read_token(id); !s) return s;
    if (text.empty()) continue;  // some converters fill holes with "": such an entry is never made
    const TokenKind kind = vocabulary_.kinds[i];
    const bool is_marked = kind == TokenKind::user_defined || kind == TokenKind::control;
    if (kind == TokenKind::byte) byte_ids_[static_cast<unsigned char>(bytes_[i].front())] = id;
    if (!is_marked && kind != TokenKind::normal) continue;
    const auto [at, is_new] =
        is_marked ? marked.try_emplace(text, id) : by_bytes_.try_emplace(bytes_[i], id);
    if (!is_new) {
      return make_error(ErrorCode::corrupt_file, "entries {} and {} of key '{}' are both '{}'",
                        at->second, id, kTokens, text);
    }
    if (kind == TokenKind::user_defined) added.push_back({text, id});
    if (is_marked) added_and_control.push_back({text, id});
  }
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = by_bytes_.find(std::string_view(&c, 1));
    if (found != by_bytes_.end()) byte_ids_[byte] = found->second;
  }
  added_ = MarkedTokens(added);
  added_and_control_ = MarkedTokens(added_and_control);
  return {};
}

Status BpeTokenizer::read_merges() {
  const auto& merges = vocabulary_.merges;
  std::vector<BpeMerges::Merge> table;
  table.reserve(merges.size());
  const auto fault = [&](size_t rank, const char* what) {
    return make_error(ErrorCode::corrupt_file, "entry {} of key '{}' ('{}') {}", rank, kMerges,
                      merges[rank], what);
  };
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const size_t space = merges[rank].find(' ');
    if (space == std::string_view::npos) return fault(rank, "has no space between its two parts");
    const auto left = spelled_bytes(merges[rank].substr(0, space));
    const auto right = spelled_bytes(merges[rank].substr(space + 1));
    if (!left || !right) return fault(rank, "holds a character that spells no byte");
    if (left->empty() || right->empty()) return fault(rank, "has an empty part");
    const auto left_id = by_bytes_.find(*left);
    const auto right_id = by_bytes_.find(*right);
    const auto result = by_bytes_.find(*left + *right);
    if (left_id == by_bytes_.end() || right_id == by_bytes_.end() || result == by_bytes_.end())
      return fault(rank, "joins or makes a token that is not in the vocabulary");
    table.push_back(
        {left_id->second, right_id->second, result->second, static_cast<int32_t>(rank)});
  }
  if (const auto repeated = merges_.assign(std::move(table), vocabulary_.tokens.size()))
    return fault(static_cast<size_t>(*repeated), "comes a second time");
  vocabulary_.merges = {};  // views into a file that may be closed
  return {};
}

Status BpeTokenizer::encode_piece(std::string_view piece, Encoding& encoding) const {
  if (vocabulary_.ignore_merges) {
    const auto whole = by_bytes_.find(piece);
    if (whole != by_bytes_.end()) {
      encoding.ids.push_back(whole->second);
      return {};
    }
  }
  encoding.symbols.clear();
  for (const char& c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte_ids_[byte] < 0) {
      return make_error(ErrorCode::invalid_argument,
                        "the byte 0x{:02X} at offset {} of the text has no token in this "
                        "model's vocabulary",
                        byte, &c - encoding.text.data());
    }
    encoding.symbols.push_back(byte_ids_[byte]);
  }
  merges_.apply(encoding.symbols, encoding.workspace, encoding.ids);
  return {};
}

Status BpeTokenizer::encode_plain(std::string_view part, Encoding& encoding) const {
  return pre_tokenizer_->split(
      part, [&](std::string_view piece) { return encode_piece(piece, encoding); });
}

Result<std::vector<TokenId>> BpeTokenizer::encode(std::string_view text,
                                                  SpecialTokens special) const {
  if (text.size() > kMostTextBytes) {
    return make_error(ErrorCode::limit_exceeded, "a text of {} bytes is longer than the {} allowed",
                      text.size(), kMostTextBytes);
  }
  const MarkedTokens& marked = special == SpecialTokens::parse ? added_and_control_ : added_;
  Encoding encoding;
  encoding.text = text;
  size_t at = 0;
  for (const auto& match : marked.find_all(text)) {
    if (auto s = encode_plain(text.substr(at, match.offset - at), encoding); !s)
      return std::move(s).error();
    encoding.ids.push_back(match.id);
    at = size_t{match.offset} + match.length;
  }
  if (auto s = encode_plain(text.substr(at), encoding); !s) return std::move(s).error();
  return std::move(encoding.ids);
}

std::string BpeTokenizer::description() const {
  return fmt::format("{} / {}", vocabulary_.model, vocabulary_.pre);
}

}  // namespace kvasir
