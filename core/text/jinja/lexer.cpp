#include "core/text/jinja/lexer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/jinja/string_literal.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

/// Line ends become "\n"; one line end at the end of the template is dropped.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}
  Result<std::vector<Token>> run();

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts_with(std::string_view text) const { return rest().starts_with(text); }
  void advance(size_t n);
  void skip_spaces();
  void trim_after_tag(char sign);
  void add(TokenType type, std::string text = {});
  void add_data(size_t end, char sign, bool is_variable);
  size_t raw_begin_length(bool& strips) const;
  Status lex_root();
  Status lex_comment();
  Status lex_raw();
  Status lex_code(TokenType end_type, std::string_view end_mark);
  bool lex_end_mark(TokenType end_type, std::string_view end_mark);
  Status lex_code_token();
  Status lex_number();
  Status lex_string();
  Status lex_name();
  Status lex_symbol();
  Error error(std::string_view what) const;

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what came before ended with a line end
  std::string open_brackets_;  // the closing ones expected
  std::vector<Token> tokens_;
};

Error Lexer::error(std::string_view what) const {
  return make_error(ErrorCode::invalid_argument, "line {}: {}", line_, what);
}

void Lexer::advance(size_t n) {
  const auto passed = rest().substr(0, n);
  line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
  if (!passed.empty()) line_starting_ = passed.back() == '\n';
  at_ += passed.size();
}

void Lexer::skip_spaces() {
  size_t n = 0;
  const auto text = rest();
  while (n < text.size()) {
    const Character c = character_at(text, n);
    if (!is_space(c.code)) break;
    n += c.n_bytes;
  }
  advance(n);
}

/// After the closing mark of a block or comment: "-" strips all whitespace, nothing one line end.
void Lexer::trim_after_tag(char sign) {
  if (sign == '-') {
    skip_spaces();
  } else if (sign != '+' && starts_with("\n")) {
    advance(1);
  }
}

void Lexer::add(TokenType type, std::string text) {
  Token token;
  token.type = type;
  token.line = line_;
  token.text = std::move(text);
  tokens_.push_back(std::move(token));
}

/// Text up to `end`, before a tag with `sign`; stops at `end`.
void Lexer::add_data(size_t end, char sign, bool is_variable) {
  std::string_view text = std::string_view(source_).substr(at_, end - at_);
  const auto trailing_spaces_from = [&](size_t from) {
    size_t begin = text.size();
    while (begin > from) {
      const size_t previous = previous_character(text, begin);
      if (!is_space(character_at(text, previous).code)) break;
      begin = previous;
    }
    return begin;
  };
  size_t keep = text.size();
  if (sign == '-') {
    keep = trailing_spaces_from(0);
  } else if (sign != '+' && !is_variable) {
    const size_t line_end = text.rfind('\n');
    const size_t line_begin = line_end == std::string_view::npos ? 0 : line_end + 1;
    if ((line_begin > 0 || line_starting_) && trailing_spaces_from(line_begin) == line_begin) {
      keep = line_begin;
    }
  }
  if (keep > 0) add(TokenType::data, std::string(text.substr(0, keep)));
  advance(text.size());
}

/// Length of a raw tag at the current place, 0 when there is none.
size_t Lexer::raw_begin_length(bool& strips) const {
  const auto text = rest();
  size_t n = 2;
  const auto spaces = [&] {
    while (n < text.size() && is_space(character_at(text, n).code)) {
      n += character_at(text, n).n_bytes;
    }
  };
  if (n < text.size() && (text[n] == '-' || text[n] == '+')) ++n;
  spaces();
  if (!text.substr(n).starts_with("raw")) return 0;
  n += 3;
  spaces();
  strips = text.substr(n).starts_with("-%}");
  if (strips) return n + 3;
  return text.substr(n).starts_with("%}") ? n + 2 : 0;
}

Status Lexer::lex_comment() {
  const size_t end = source_.find("#}", at_);
  if (end == std::string::npos) return error("missing end of comment tag");
  const char sign = end > at_ ? source_[end - 1] : ' ';
  advance(end + 2 - at_);
  trim_after_tag(sign);
  return {};
}

Status Lexer::lex_raw() {
  for (size_t from = at_;;) {
    const size_t open = source_.find("{%", from);
    if (open == std::string::npos) return error("missing end of raw directive");
    const auto text = std::string_view(source_);
    size_t n = open + 2;
    const char sign = n < text.size() ? text[n] : ' ';
    if (sign == '-' || sign == '+') ++n;
    while (n < text.size() && is_space(character_at(text, n).code)) {
      n += character_at(text, n).n_bytes;
    }
    const bool named = text.substr(n).starts_with("endraw");
    n += 6;
    while (named && n < text.size() && is_space(character_at(text, n).code)) {
      n += character_at(text, n).n_bytes;
    }
    const char end_sign = named && n < text.size() ? text[n] : ' ';
    if (end_sign == '-' || end_sign == '+') ++n;
    if (named && n < text.size() && text.substr(n).starts_with("%}")) {
      add_data(open, sign, false);
      advance(n + 2 - at_);
      trim_after_tag(end_sign);
      return {};
    }
    from = open + 2;
  }
}

Status Lexer::lex_root() {
  size_t open = at_;
  while (true) {
    open = source_.find('{', open);
    if (open == std::string::npos || open + 1 >= source_.size()) {
      if (at_ < source_.size()) add(TokenType::data, std::string(rest()));
      at_ = source_.size();
      return {};
    }
    const char kind = source_[open + 1];
    if (kind == '%' || kind == '{' || kind == '#') break;
    ++open;
  }
  const char kind = source_[open + 1];
  const char sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
  add_data(open, sign, kind == '{');
  const bool signed_tag = sign == '-' || sign == '+';
  if (kind == '%') {
    bool strips = false;
    if (const size_t raw = raw_begin_length(strips); raw > 0) {
      advance(raw);
      if (strips) skip_spaces();
      return lex_raw();
    }
  }
  if (kind != '#') add(kind == '%' ? TokenType::block_begin : TokenType::variable_begin);
  advance(signed_tag ? 3 : 2);
  if (kind == '#') return lex_comment();
  if (kind == '%') return lex_code(TokenType::block_end, "%}");
  return lex_code(TokenType::variable_end, "}}");
}

bool Lexer::lex_end_mark(TokenType end_type, std::string_view end_mark) {
  char sign = ' ';
  size_t n = 0;
  if (starts_with("-") || (starts_with("+") && end_type == TokenType::block_end)) {
    sign = rest()[0];
    n = 1;
  }
  if (!rest().substr(n).starts_with(end_mark)) return false;
  add(end_type);
  advance(n + 2);
  if (end_type == TokenType::block_end) {
    trim_after_tag(sign);
  } else if (sign == '-') {
    skip_spaces();
  }
  return true;
}

Status Lexer::lex_code(TokenType end_type, std::string_view end_mark) {
  open_brackets_.clear();
  while (true) {
    skip_spaces();
    if (at_ >= source_.size()) return {};  // the parser reports the missing end
    if (open_brackets_.empty() && lex_end_mark(end_type, end_mark)) return {};
    if (tokens_.size() > kMostTemplateTokens) return error("the template has too many tokens");
    if (auto s = lex_code_token(); !s) return s;
  }
}

Status Lexer::lex_code_token() {
  const Character c = character_at(source_, at_);
  if (c.code >= '0' && c.code <= '9') return lex_number();
  if (c.code == '\'' || c.code == '"') return lex_string();
  if (c.code == '_' || is_letter(c.code)) return lex_name();
  return lex_symbol();
}

Status Lexer::lex_number() {
  const NumberLiteral number = read_number(source_, at_);
  if (number.is_too_large) return error("an integer is larger than 64 bits");
  add(number.is_real ? TokenType::real : TokenType::integer, source_.substr(at_, number.length));
  tokens_.back().integer = number.integer;
  tokens_.back().real = number.real;
  advance(number.length);
  return {};
}

Status Lexer::lex_string() {
  const char quote = source_[at_];
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) return error("a string is not closed");
  auto text = unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
  if (!text) return error(text.error().message);
  add(TokenType::string, std::move(*text));
  advance(end + 1 - at_);
  return {};
}

Status Lexer::lex_name() {
  size_t end = at_;
  while (end < source_.size()) {
    const Character c = character_at(source_, end);
    if (!is_word(c.code)) break;
    end += c.n_bytes;
  }
  add(TokenType::name, source_.substr(at_, end - at_));
  advance(end - at_);
  return {};
}

Status Lexer::lex_symbol() {
  static constexpr std::string_view kSymbols[] = {
      "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";",
  };
  for (const std::string_view symbol : kSymbols) {
    if (!starts_with(symbol)) continue;
    const char c = symbol[0];
    if (c == '(') open_brackets_ += ')';
    if (c == '[') open_brackets_ += ']';
    if (c == '{') open_brackets_ += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_brackets_.empty()) return error(fmt::format("unexpected '{}'", c));
      if (open_brackets_.back() != c) {
        return error(fmt::format("unexpected '{}', expected '{}'", c, open_brackets_.back()));
      }
      open_brackets_.pop_back();
    }
    add(TokenType::symbol, std::string(symbol));
    advance(symbol.size());
    return {};
  }
  const Character c = character_at(source_, at_);
  return error(fmt::format("unexpected character '{}'", source_.substr(at_, c.n_bytes)));
}

Result<std::vector<Token>> Lexer::run() {
  while (at_ < source_.size()) {
    if (tokens_.size() > kMostTemplateTokens) return error("the template has too many tokens");
    if (auto s = lex_root(); !s) return std::move(s).error();
  }
  add(TokenType::end);
  return std::move(tokens_);
}

}  // namespace

Result<std::vector<Token>> tokenize_template(std::string_view source) {
  if (source.size() > kMostTemplateBytes) {
    return make_error(ErrorCode::limit_exceeded,
                      "a template of {} bytes is longer than the {} allowed", source.size(),
                      kMostTemplateBytes);
  }
  return Lexer(source).run();
}

}  // namespace kvasir::jinja
