// What is markup and what is content, and the ids of both.
#include <doctest/doctest.h>

#include "tests/text/fixtures.h"
#include "tests/text/template_cases.h"

namespace kvasir::test {
namespace {

/// Content in «», markup as it is.
std::string marked(const std::string& source, const std::string& content,
                   const std::string& role = "user") {
  Json input;
  input["messages"] = {{{"role", role}, {"content", content}}};
  const auto rendered =
      render("{% set c = messages[0].content %}{% set r = messages[0].role %}" + source, input);
  if (!rendered) return rendered.error().message;
  std::string text;
  for (const auto& span : *rendered) text += span.is_content ? "«" + span.text + "»" : span.text;
  return text;
}

}  // namespace

TEST_CASE("given content, when a template passes it through operations, then it stays content") {
  CHECK(marked("<|a|>{{ c }}<|b|>", "x<|b|>y") == "<|a|>«x<|b|>y»<|b|>");
  CHECK(marked("{{ '[' + c + ']' }}", "x") == "[«x»]");
  CHECK(marked("{{ '[' ~ c ~ 1 ~ ']' }}", "x") == "[«x»1]");
  CHECK(marked("{{ ('ab' + c + 'cd')[1:4] }}", "xyz") == "b«xy»");
  CHECK(marked("{{ ('ab' + c)[::-1] }}", "xy") == "«yx»ba");
  CHECK(marked("{{ ('ab' + c)[2] }}", "é") == "«é»");
  CHECK(marked("{{ (' ' + c + ' ') | trim }}", " x ") == "«x»");
  CHECK(marked("{{ ('a' + c) | upper }}", "ß") == "A«SS»");
  CHECK(marked("{{ (c + '-a') | title }}", "straße") == "«Straße»-A");
  CHECK(marked("{{ c.replace('b', '[B]') }}", "abc") == "«a»[B]«c»");
  CHECK(marked("{{ 'abc'.replace('b', c) }}", "X") == "a«X»c");
  CHECK(marked("{{ c.split('|') | join('/') }}", "a|b") == "«a»/«b»");
  CHECK(marked("{{ '-'.join([c, 'm']) }}", "x") == "«x»-m");
  CHECK(marked("{{ '%s=%s' % ('k', c) }}", "v") == "k=«v»");
  CHECK(marked("{{ '%5s|' % c }}", "v") == "    «v»|");
  CHECK(marked("{{ '{}:{:>3}'.format('k', c) }}", "v") == "k:  «v»");
  CHECK(marked("{{ c % 1 }}", "<%d>") == "«<»1«>»");
  CHECK(marked("{{ {'k': c} | tojson }}", "a\"\n") == "{\"k\": \"«a\\\"\\n»\"}");
  CHECK(marked("{{ [c] }}", "a'b\n") == "[\"«a'b\\n»\"]");
  CHECK(marked("{{ messages[0] | tojson }}", "x") ==
        "{\"«role»\": \"user\", \"«content»\": \"«x»\"}");
  CHECK(marked("{{ c * 2 ~ 'm' * 2 }}", "x") == "«xx»mm");
  CHECK(marked("{{ c | indent(1) }}", "a\nb") == "«a»\n «b»");
  CHECK(marked("{{ c.partition('=') | list | join('') }}", "a=b") == "«a=b»");
  CHECK(marked("{% set b %}<{{ c }}>{% endset %}{{ b }}", "x") == "<«x»>");
  CHECK(marked("{% macro f(t) %}<{{ t }}>{% endmacro %}{{ f(c) }}", "x") == "<«x»>");
  CHECK(marked("{% filter upper %}a{{ c }}{% endfilter %}", "x") == "A«X»");
  CHECK(marked("{% for ch in c %}{{ ch }}.{% endfor %}", "ab") == "«a».«b».");
  CHECK(marked("{{ c | list | sort | join }}", "ba") == "«ab»");
  CHECK(marked("{{ c if c == 'x' else 'no' }}{{ 'yes' if c == 'x' }}", "x") == "«x»yes");
}

TEST_CASE("given a role, when templates know it, then it is markup, else content") {
  CHECK(marked("<|{{ r }}|>", "", "user") == "<|user|>");
  CHECK(marked("<|{{ r }}|>", "", "im_end") == "<|«im_end»|>");
  CHECK(marked("<|{{ r }}|>", "", "user|>") == "<|«user|>»|>");
}

TEST_CASE("given BOS and EOS, when a template prints them, then they are markup") {
  CHECK(marked("{{ bos_token + c + eos_token }}", "</s>") == "<s>«</s>»</s>");
}

TEST_CASE("given spans, when they are tokenised, then only markup makes control tokens") {
  const auto fixture = read_fixture("small_bpe.json");
  const auto owned = small_vocabulary(fixture, "gpt-2");
  const auto tokenizer = tokenizer_of(owned);
  const auto control = [&] {
    for (int64_t i = 0; i < tokenizer->n_vocab(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (tokenizer->token_kind(id) == TokenKind::control) return id;
    }
    return TokenId{-1};
  }();
  REQUIRE(control >= 0);
  const std::string spelling(tokenizer->token_text(control));
  const auto ids_of = [&](const std::vector<TemplateSpan>& spans) {
    const auto ids = tokenize_spans(*tokenizer, spans);
    REQUIRE(ids.ok());
    return *ids;
  };
  const auto encoded = [&](const std::string& text, SpecialTokens special) {
    const auto ids = tokenizer->encode(text, special);
    REQUIRE(ids.ok());
    return *ids;
  };
  // Markup alone: as parsed. Content alone: as text.
  CHECK(ids_of({{spelling, false}}) == std::vector<TokenId>{control});
  CHECK(ids_of({{spelling, true}}) == encoded(spelling, SpecialTokens::as_text));
  // Half of a spelling in content makes no control token, markup in two spans does.
  const std::string head = spelling.substr(0, 2), tail = spelling.substr(2);
  CHECK(ids_of({{head, true}, {tail, false}}) == encoded(spelling, SpecialTokens::as_text));
  CHECK(ids_of({{head, false}, {tail, true}}) == encoded(spelling, SpecialTokens::as_text));
  CHECK(ids_of({{head, false}, {tail, false}}) == std::vector<TokenId>{control});
  CHECK(ids_of({{head, false}, {"", true}, {tail, false}}) == std::vector<TokenId>{control});
  // Merges cross the borders of spans: the same ids wherever the text is cut.
  const std::string text = "the cat  sat on\n\nthe mat, don't 12 he said";
  const auto whole = encoded(spelling + text + spelling + text, SpecialTokens::parse);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    CAPTURE(cut);
    CHECK(ids_of({{spelling + text.substr(0, cut), false},
                  {text.substr(cut), true},
                  {spelling, false},
                  {text.substr(0, cut), true},
                  {text.substr(cut), false}}) == whole);
  }
}

}  // namespace kvasir::test
