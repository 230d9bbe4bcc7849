#include "core/engine/session.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/engine/conversation.h"
#include "core/engine/generate.h"
#include "models/load.h"
#include "tests/support/tiny_llama.h"

using namespace kvasir;  // NOLINT

namespace {

/// A tiny model, loaded; its file is removed at once.
struct Tiny {
  explicit Tiny(EngineOptions options = {}) {
    test::TinyLlama tiny;
    tiny.make();
    auto file = tiny.file();
    file.text("tokenizer.chat_template",
              "{% for m in messages %}<|start|>{{ m.role }}:{{ m.content }}<|end|>{% endfor %}"
              "{% if add_generation_prompt %}<|start|>assistant:{% endif %}");
    const auto path = std::filesystem::temp_directory_path() /
                      ("kvasir-session-" + std::to_string(getpid()) + ".gguf");
    file.write(path.string());
    auto result = load_model(path.string());
    std::filesystem::remove(path);
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    loaded = std::move(*result);
    if (options.threads == 0) options.threads = 2;
    auto made = Engine::create(loaded->model, options);
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    engine = std::move(*made);
  }
  std::unique_ptr<Session> session() const {
    auto made = Session::create(engine);
    REQUIRE(made);
    return std::move(*made);
  }
  const Tokenizer& tokenizer() const { return *loaded->tokenizer; }

  std::unique_ptr<LoadedModel> loaded;
  std::shared_ptr<Engine> engine;
};

std::vector<TokenId> ids(std::initializer_list<TokenId> list) {
  return list;
}

Generation answer(const Tiny& tiny, const GenerateOptions& options, std::vector<TokenId> prompt,
                  const GenerateCallbacks& callbacks = {}) {
  auto session = tiny.session();
  auto result = generate(*session, tiny.tokenizer(), prompt, options, callbacks);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  return std::move(*result);
}

}  // namespace

TEST_CASE("given a greedy answer, when each step is taken by hand, then the tokens are the same") {
  const Tiny tiny;
  GenerateOptions options;
  options.max_tokens = 12;
  const auto prompt = ids({72, 101, 108, 108, 111});
  const auto made = answer(tiny, options, prompt);
  CHECK(made.finish_reason == FinishReason::length);
  REQUIRE(made.tokens.size() == 12);
  auto tokens = prompt;
  for (const TokenId token : made.tokens) {
    auto cold = tiny.session();  // evaluates everything anew each time
    REQUIRE(cold->evaluate(tokens));
    const auto logits = cold->logits();
    CHECK(token == std::max_element(logits.begin(), logits.end()) - logits.begin());
    tokens.push_back(token);
  }
}

TEST_CASE("given streamed text, when the deltas are joined, then they are the whole text") {
  const Tiny tiny;
  GenerateOptions options;
  options.max_tokens = 40;
  options.sampling.temperature = 1.5F;
  options.sampling.seed = 9;
  std::string joined;
  GenerateCallbacks callbacks;
  callbacks.on_text = [&](std::string_view delta) {
    CHECK_FALSE(find_invalid_utf8(delta));
    joined += delta;
  };
  const auto made = answer(tiny, options, ids({65, 66}), callbacks);
  CHECK(joined == made.text);
  const auto again = answer(tiny, options, ids({65, 66}));
  CHECK(again.tokens == made.tokens);  // the same seed
}

TEST_CASE("given the first answer's third token as an end, when asked again, then it stops there") {
  const Tiny tiny;
  GenerateOptions options;
  options.max_tokens = 8;
  const auto whole = answer(tiny, options, ids({1, 2, 3}));
  options.end_tokens = {whole.tokens[2]};
  const auto stopped = answer(tiny, options, ids({1, 2, 3}));
  const auto first = std::find(whole.tokens.begin(), whole.tokens.end(), whole.tokens[2]);
  CHECK(stopped.finish_reason == FinishReason::stop);
  CHECK(stopped.tokens == std::vector<TokenId>(whole.tokens.begin(), first + 1));
}

TEST_CASE("given a context of 20, when a prompt of 15 is answered, then it ends when it is full") {
  const Tiny tiny({.context_tokens = 20});
  const auto made = answer(tiny, {}, std::vector<TokenId>(15, 7));
  CHECK(made.finish_reason == FinishReason::context_full);
  // Positions 15..19 are evaluated; the token sampled after the last one needs none.
  CHECK(made.tokens.size() == 6);
  auto session = tiny.session();
  const auto refused = generate(*session, tiny.tokenizer(), std::vector<TokenId>(20, 7), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::limit_exceeded);
  CHECK(refused.error().message.find("20 tokens") != std::string::npos);
}

TEST_CASE("given a conversation, when it goes on, then only new tokens are evaluated") {
  const Tiny tiny;
  auto session = tiny.session();
  Conversation conversation(*session, tiny.tokenizer(), *tiny.loaded->chat_template);
  GenerateOptions options;
  options.max_tokens = 5;
  const auto first = conversation.send("one", options);
  REQUIRE(first);
  CHECK(first->prefill.tokens_cached == 0);
  const auto second = conversation.send("two", options);
  REQUIRE(second);
  CHECK(second->prefill.tokens_cached >= first->prefill.tokens_evaluated);
  // The answer is a function of the messages: a cold session gives the same.
  auto cold_session = tiny.session();
  Conversation cold(*cold_session, tiny.tokenizer(), *tiny.loaded->chat_template);
  auto messages = conversation.messages();
  messages.pop_back();
  cold.set_messages(messages);
  cold.set_messages({messages.begin(), messages.end() - 1});
  const auto again = cold.send("two", options);
  REQUIRE(again);
  CHECK(again->tokens == second->tokens);
  CHECK(cold_session->logits_hash() == session->logits_hash());

  CHECK(conversation.messages().size() == 4);
  CHECK(conversation.undo());
  CHECK(conversation.messages().size() == 2);
  CHECK(conversation.undo());
  CHECK_FALSE(conversation.undo());
  CHECK_FALSE(conversation.regenerate(options));
}

TEST_CASE("given a cancelled answer, when the next question comes, then the session is right") {
  const Tiny tiny;
  auto session = tiny.session();
  CancelToken cancel;
  GenerateOptions options;
  options.max_tokens = 50;
  int pieces = 0;
  GenerateCallbacks callbacks;
  callbacks.on_text = [&](std::string_view) {
    if (++pieces == 3) cancel.request();
  };
  const auto prompt = ids({10, 20, 30});
  const auto stopped = generate(*session, tiny.tokenizer(), prompt, options, callbacks, &cancel);
  REQUIRE(stopped);
  CHECK(stopped->finish_reason == FinishReason::cancelled);
  CHECK(stopped->tokens.size() < 50);
  cancel.reset();
  const auto next = generate(*session, tiny.tokenizer(), ids({10, 20, 31}), options);
  REQUIRE(next);
  CHECK(next->tokens == answer(tiny, options, ids({10, 20, 31})).tokens);
}

TEST_CASE("given options out of range, when an engine is made, then the error names them") {
  const Tiny tiny;
  const auto refused = [&](EngineOptions options) {
    auto engine = Engine::create(tiny.loaded->model, options);
    REQUIRE_FALSE(engine);
    return engine.error().message;
  };
  CHECK(refused({.context_tokens = -1}).find("context") != std::string::npos);
  CHECK(refused({.prefill_chunk = 0}).find("chunk") != std::string::npos);
  CHECK(refused({.threads = -3}).find("threads") != std::string::npos);
}

TEST_CASE("given a plan, when the engine is filled, then KV is what the plan said") {
  const Tiny tiny({.context_tokens = 64});
  const auto& plan = tiny.engine->memory_plan();
  // 2 layers x 2 KV heads x (keys 16 + values 16) x 4 bytes (an f32 model keeps f32).
  CHECK(plan.kv_bytes_per_token == 2 * 2 * 32 * 4);
  CHECK(plan.kv_bytes == 64 * plan.kv_bytes_per_token);
  auto session = tiny.session();
  REQUIRE(session->evaluate(std::vector<TokenId>(64, 3)));
  const auto& pool = *tiny.engine->pools().pools[0];
  CHECK(static_cast<size_t>(pool.statistics().blocks_in_use) * pool.layout().block_bytes() ==
        plan.kv_bytes);
}
