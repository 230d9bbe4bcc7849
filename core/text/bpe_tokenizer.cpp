#include "core/text/bpe_tokenizer.h"

#include <queue>

#include "core/base/error.h"
#include "core/text/byte_level.h"

namespace kvasir {
namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

/// A merge that may be done: the pair whose left symbol is at `left`. Lower rank first, then the
/// leftmost.
struct Candidate {
  int32_t rank;
  int32_t left;
  TokenId left_id;
  TokenId right_id;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

/// One symbol of a piece; a doubly linked list inside an array.
struct Symbol {
  TokenId id;  // -1: merged into the one before
  int32_t previous;
  int32_t next;
};

}  // namespace

Result<std::unique_ptr<BpeTokenizer>> BpeTokenizer::create(Vocabulary vocabulary,
                                                           bool ignore_merges) {
  std::unique_ptr<BpeTokenizer> t(new BpeTokenizer());
  t->vocabulary_ = std::move(vocabulary);
  t->ignore_merges_ = ignore_merges;
  auto pre = PreTokenizer::named(t->vocabulary_.pre);
  if (!pre) return std::move(pre).error();
  t->pre_tokenizer_ = std::move(*pre);

  const auto& v = t->vocabulary_;
  t->bytes_.resize(v.tokens.size());
  t->by_bytes_.reserve(v.tokens.size());
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenKind kind = v.kinds[i];
    if (kind == TokenKind::control || kind == TokenKind::unknown || kind == TokenKind::unused) {
      if (kind == TokenKind::control) t->added_and_control_.add(v.tokens[i], id);
      continue;
    }
    if (kind == TokenKind::user_defined) {
      t->bytes_[i] = v.tokens[i];  // added tokens are spelled as they are
      t->added_.add(v.tokens[i], id);
      t->added_and_control_.add(v.tokens[i], id);
      continue;
    }
    auto bytes = spelled_bytes(v.tokens[i]);
    if (!bytes) {
      return make_error(ErrorCode::corrupt_file,
                        "entry {} of key 'tokenizer.ggml.tokens' holds a character that spells no "
                        "byte",
                        i);
    }
    t->bytes_[i] = std::move(*bytes);
    t->by_bytes_.try_emplace(t->bytes_[i], id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = t->by_bytes_.find(std::string_view(&c, 1));
    t->byte_ids_[static_cast<size_t>(byte)] = found == t->by_bytes_.end() ? -1 : found->second;
  }
  if (auto s = t->read_merges(); !s) return std::move(s).error();
  return t;
}

Status BpeTokenizer::read_merges() {
  const auto& merges = vocabulary_.merges;
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const size_t space = merges[rank].find(' ');
    const auto fault = [&](const char* what) {
      return make_error(ErrorCode::corrupt_file, "entry {} of key 'tokenizer.ggml.merges' ('{}') {}",
                        rank, merges[rank], what);
    };
    if (space == std::string_view::npos) return fault("has no space between its two parts");
    const auto left = spelled_bytes(merges[rank].substr(0, space));
    const auto right = spelled_bytes(merges[rank].substr(space + 1));
    if (!left || !right) return fault("holds a character that spells no byte");
    const auto left_id = by_bytes_.find(*left);
    const auto right_id = by_bytes_.find(*right);
    const auto result = by_bytes_.find(*left + *right);
    if (left_id == by_bytes_.end() || right_id == by_bytes_.end() || result == by_bytes_.end())
      return fault("joins or makes a token that is not in the vocabulary");
    merges_.try_emplace(pair_key(left_id->second, right_id->second),
                        Merge{static_cast<int32_t>(rank), result->second});
  }
  vocabulary_.merges = {};  // views into a file that may be closed
  return {};
}

Status BpeTokenizer::encode_piece(std::string_view piece, std::vector<TokenId>& ids) const {
  if (ignore_merges_) {
    const auto whole = by_bytes_.find(piece);
    if (whole != by_bytes_.end()) {
      ids.push_back(whole->second);
      return {};
    }
  }
  const auto n = static_cast<int32_t>(piece.size());
  std::vector<Symbol> symbols(piece.size());
  for (int32_t i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<size_t>(i)]);
    if (byte_ids_[byte] < 0) {
      return make_error(ErrorCode::invalid_argument,
                        "the vocabulary has no token for the byte 0x{:02X}", byte);
    }
    symbols[static_cast<size_t>(i)] = {byte_ids_[byte], i - 1, i + 1 < n ? i + 1 : -1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](int32_t left) {
    if (left < 0) return;
    const Symbol& a = symbols[static_cast<size_t>(left)];
    if (a.next < 0) return;
    const TokenId right_id = symbols[static_cast<size_t>(a.next)].id;
    const auto merge = merges_.find(pair_key(a.id, right_id));
    if (merge != merges_.end()) queue.push({merge->second.rank, left, a.id, right_id});
  };
  for (int32_t i = 0; i + 1 < n; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(best.left)];
    // Either symbol may have been merged away since.
    if (left.id != best.left_id || left.next < 0) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = merges_.find(pair_key(best.left_id, best.right_id))->second.result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (int32_t i = 0; i >= 0 && n > 0; i = symbols[static_cast<size_t>(i)].next)
    ids.push_back(symbols[static_cast<size_t>(i)].id);
  return {};
}

Status BpeTokenizer::encode_plain(std::string_view text, std::vector<TokenId>& ids) const {
  Status status;
  auto split = pre_tokenizer_->split(text, [&](std::string_view piece) {
    if (status) status = encode_piece(piece, ids);
  });
  return status ? split : status;
}

Result<std::vector<TokenId>> BpeTokenizer::encode(std::string_view text,
                                                  SpecialTokens special) const {
  const MarkedTokens& marked = special == SpecialTokens::parse ? added_and_control_ : added_;
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (text.size() > kMostBytes) {
    return make_error(ErrorCode::limit_exceeded, "a text of {} bytes is longer than the {} allowed",
                      text.size(), kMostBytes);
  }
  std::vector<TokenId> ids;
  size_t at = 0;
  while (at < text.size()) {
    const auto match = marked.empty() ? MarkedTokens::Match{} : marked.find(text, at);
    const size_t end = match.length > 0 ? match.offset : text.size();
    if (end > at) {
      if (auto s = encode_plain(text.substr(at, end - at), ids); !s) return std::move(s).error();
    }
    if (match.length == 0) break;
    ids.push_back(match.id);
    at = match.offset + match.length;
  }
  return ids;
}

std::string BpeTokenizer::description() const {
  return fmt::format("{} / {}", vocabulary_.model, vocabulary_.pre);
}

}  // namespace kvasir
