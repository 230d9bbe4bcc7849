// The public C++ interface on a tiny random model.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "kvasir/kvasir.hpp"
#include "tests/support/tiny_llama.h"

namespace {

using kvasir::ErrorCode;
using kvasir::LanguageModel;

/// A model file that is removed again.
class TinyFile {
 public:
  explicit TinyFile(bool with_template) {
    kvasir::test::TinyLlama tiny;
    tiny.make();
    auto file = tiny.file();
    if (with_template) {
      file.text("tokenizer.chat_template",
                "{% for m in messages %}{{ m['role'] + ':' + m['content'] + '\n' }}{% endfor %}");
    }
    char name[] = "/tmp/kvasir-library-test-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    path_ = file.write(name);
    std::fclose(fdopen(fd, "r"));
  }
  ~TinyFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

LanguageModel load(const std::string& path, kvasir::ModelOptions options = {}) {
  if (options.threads == 0) options.threads = 1;
  auto model = LanguageModel::load(path, options);
  REQUIRE_MESSAGE(model, model.error().message);
  return *model;
}

kvasir::ReplyOptions greedy(int64_t max_tokens) {
  kvasir::ReplyOptions options;
  options.temperature = 0;
  options.max_tokens = max_tokens;
  return options;
}

}  // namespace

TEST_CASE("given a model file, when it is loaded, then it says what it is") {
  const TinyFile file(true);
  kvasir::ModelOptions options;
  int64_t done = -1, total = -2;
  options.progress = [&](int64_t d, int64_t t) { done = d, total = t; };
  const auto model = load(file.path(), options);
  CHECK(model.name() == "tiny random llama");
  CHECK(model.context_tokens() == 2048);
  CHECK(model.n_vocab() == 260);
  CHECK(done == total);
  options.context_tokens = 100;
  CHECK(load(file.path(), options).context_tokens() == 100);
}

TEST_CASE("given faulty arguments, when a model is loaded, then the error says which") {
  const TinyFile file(true);
  CHECK(LanguageModel::load("/absent/model.gguf").error().code == ErrorCode::not_found);
  const auto refused = [&](const kvasir::ModelOptions& options, const std::string& name) {
    const auto model = LanguageModel::load(file.path(), options);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(model.error().message.find(name) != std::string::npos, model.error().message);
  };
  kvasir::ModelOptions options;
  options.kv_type = "f8";
  refused(options, "f8");
  options = {};
  options.threads = -1;
  refused(options, "threads");
  options = {};
  options.prefill_chunk = 0;
  refused(options, "prefill_chunk");
  options = {};
  options.context_tokens = -5;
  refused(options, "context_tokens");
}

TEST_CASE("given a set token, when a model is loaded, then loading is cancelled") {
  const TinyFile file(true);
  kvasir::CancelToken cancel;
  cancel.request();
  kvasir::ModelOptions options;
  options.cancel = &cancel;
  const auto model = LanguageModel::load(file.path(), options);
  REQUIRE_FALSE(model);
  CHECK(model.error().code == ErrorCode::cancelled);
}

TEST_CASE("given a chat, when two questions are asked, then the second turn reuses the first") {
  const TinyFile file(true);
  auto chat = load(file.path()).start_chat();  // the chat keeps its model alive
  REQUIRE(chat);
  std::string streamed;
  const auto first = chat->send("Hi", greedy(8), [&](std::string_view text) { streamed += text; });
  REQUIRE(first);
  CHECK(first->text == streamed);
  CHECK(first->tokens.size() == 8);
  CHECK(first->end == kvasir::ReplyEnd::length);
  CHECK(first->prompt_tokens_cached == 0);
  const auto second = chat->send("And?", greedy(8));
  REQUIRE(second);
  CHECK(second->prompt_tokens_cached >= first->prompt_tokens);

  const auto messages = chat->messages();
  REQUIRE(messages);
  REQUIRE(messages->size() == 4);
  CHECK((*messages)[1].role == "assistant");
  CHECK((*messages)[1].content == first->text);

  // A cold chat with the same messages gives the same bits.
  auto cold = load(file.path()).start_chat();
  REQUIRE(cold->set_messages({messages->begin(), messages->begin() + 2}));
  const auto again = cold->send("And?", greedy(8));
  REQUIRE(again);
  CHECK(again->prompt_tokens_cached == 0);
  CHECK(again->logits_hash == second->logits_hash);
  CHECK(again->text == second->text);
}

TEST_CASE("given a chat, when turns are taken back, then it is as before") {
  const TinyFile file(true);
  auto chat = load(file.path()).start_chat();
  REQUIRE(chat);
  CHECK_FALSE(chat->undo());
  CHECK(chat->regenerate().error().code == ErrorCode::invalid_argument);
  REQUIRE(chat->set_system("Be brief"));
  const auto first = chat->send("Hi", greedy(6));
  REQUIRE(first);
  const auto same = chat->regenerate(greedy(6));
  REQUIRE(same);
  CHECK(same->text == first->text);
  CHECK(chat->undo());
  CHECK(chat->messages()->size() == 1);
  REQUIRE(chat->send("Hi", greedy(6)));
  chat->clear();
  CHECK(chat->messages()->size() == 1);
  REQUIRE(chat->set_system(""));
  CHECK(chat->messages()->empty());
}

TEST_CASE("given an answer on its way, when another thread cancels, then the chat stays usable") {
  const TinyFile file(true);
  auto chat = load(file.path()).start_chat();
  REQUIRE(chat);
  kvasir::CancelToken cancel;
  const auto from_another_thread = [&](std::string_view) {
    std::thread([&] { cancel.request(); }).join();
  };
  const auto reply = chat->send("Hi", greedy(0), from_another_thread, &cancel);
  REQUIRE(reply);
  CHECK(reply->end == kvasir::ReplyEnd::cancelled);
  CHECK_FALSE(reply->text.empty());
  CHECK(chat->messages()->back().content == reply->text);
  cancel.reset();
  const auto next = chat->send("And?", greedy(4), {}, &cancel);
  REQUIRE(next);
  CHECK(next->tokens.size() == 4);
}

TEST_CASE(
    "given a callback that throws, when it is called, then the call fails and nothing changed") {
  const TinyFile file(true);
  auto chat = load(file.path()).start_chat();
  REQUIRE(chat);
  const auto failed = chat->send(
      "Hi", greedy(8), [](std::string_view) { throw std::runtime_error("no room on screen"); });
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::internal);
  CHECK(failed.error().message == "no room on screen");
  CHECK(chat->messages()->empty());
  CHECK(chat->send("Hi", greedy(2)));
}

TEST_CASE("given options out of range, when asked, then the error names the option") {
  const TinyFile file(true);
  auto chat = load(file.path()).start_chat();
  REQUIRE(chat);
  auto options = greedy(-1);
  CHECK(chat->send("Hi", options).error().message.find("max_tokens") != std::string::npos);
  options = greedy(3);
  options.top_p = 2;
  CHECK(chat->send("Hi", options).error().message.find("top-p") != std::string::npos);
  CHECK(chat->messages()->empty());
}

TEST_CASE("given a context that is too small, when asked, then both numbers are named") {
  const TinyFile file(true);
  kvasir::ModelOptions small;
  small.context_tokens = 20;
  auto chat = load(file.path(), small).start_chat();
  REQUIRE(chat);
  const auto reply = chat->send(std::string(50, 'x'), greedy(4));
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::limit_exceeded);
  CHECK(reply.error().message.find("20 tokens") != std::string::npos);
  const auto full = chat->send("x", greedy(0));
  REQUIRE(full);
  CHECK(full->end == kvasir::ReplyEnd::context_full);
}

TEST_CASE("given a model without a template, then chats are refused and completing works") {
  const TinyFile file(false);
  const auto model = load(file.path());
  const auto chat = model.start_chat();
  REQUIRE_FALSE(chat);
  CHECK(chat.error().code == ErrorCode::unsupported);
  const auto reply = model.complete("abc", greedy(5));
  REQUIRE(reply);
  CHECK(reply->tokens.size() == 5);
  CHECK(model.complete("", greedy(5)).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("given a text, when it is tokenised and back, then it is the same") {
  const TinyFile file(true);
  const auto model = load(file.path());
  const std::string text("a\0\xFF gr\xC3\xBC\xC3\x9F\x65", 12);
  const auto tokens = model.tokenize(text);
  REQUIRE(tokens);
  CHECK(tokens->size() == text.size());  // the vocabulary has bytes only
  CHECK(*model.detokenize(*tokens) == text);
  const std::vector<int32_t> bad = {0, 260};
  const auto refused = model.detokenize(bad);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("260") != std::string::npos);
}

TEST_CASE("given one model, when chats run on several threads, then each gives the same answer") {
  const TinyFile file(true);
  const auto model = load(file.path());
  const auto expected = model.start_chat()->send("Hi", greedy(20));
  REQUIRE(expected);
  std::vector<std::string> texts(3);
  std::vector<std::thread> threads;
  for (auto& text : texts) {
    threads.emplace_back([&text, copy = model] {
      auto chat = copy.start_chat();
      if (!chat) return;
      const auto reply = chat->send("Hi", greedy(20));
      if (reply) text = reply->text;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& text : texts) CHECK(text == expected->text);
}
