#include "core/text/chat_template.h"

namespace kvasir {

ChatTokenizer::ChatTokenizer(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  std::vector<MarkedTokens::Spelling> spellings;
  for (int64_t i = 0; i < tokenizer.n_vocab(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenKind kind = tokenizer.token_kind(id);
    if (kind == TokenKind::control || kind == TokenKind::user_defined) {
      spellings.push_back({tokenizer.token_text(id), id});
    }
  }
  added_ = MarkedTokens(spellings);
}

Result<std::vector<TokenId>> ChatTokenizer::encode(const std::vector<TemplateSpan>& spans) const {
  std::vector<TokenId> ids;
  std::string plain;  // what is to be encoded as text before the next control token
  const auto flush = [&]() -> Status {
    if (plain.empty()) return {};
    auto part = tokenizer_.encode(plain, SpecialTokens::as_text);
    if (!part) return std::move(part).error();
    ids.insert(ids.end(), part->begin(), part->end());
    plain.clear();
    return {};
  };
  for (size_t i = 0; i < spans.size();) {
    if (spans[i].is_content) {
      plain += spans[i++].text;
      continue;
    }
    std::string markup;
    for (; i < spans.size() && (!spans[i].is_content || spans[i].text.empty()); ++i) {
      markup += spans[i].text;
    }
    size_t done = 0;
    for (const auto& match : added_.find_all(markup)) {
      // encode() finds user-defined tokens itself; a control token inside one does not count.
      if (tokenizer_.token_kind(match.id) == TokenKind::user_defined) continue;
      plain.append(markup, done, match.offset - done);
      if (auto s = flush(); !s) return std::move(s).error();
      ids.push_back(match.id);
      done = match.offset + match.length;
    }
    plain.append(markup, done);
  }
  if (auto s = flush(); !s) return std::move(s).error();
  return ids;
}

Result<std::vector<TokenId>> tokenize_spans(const Tokenizer& tokenizer,
                                            const std::vector<TemplateSpan>& spans) {
  return ChatTokenizer(tokenizer).encode(spans);
}

}  // namespace kvasir
