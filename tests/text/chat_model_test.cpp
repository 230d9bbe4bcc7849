// A real model's chat: smollm2-135m-instruct from the folder KVASIR_MODELS, or
// ~/.cache/kvasir/models. Right is what transformers makes of the same file
// (tests/oracle/jinja_oracle.py model). Where the file is missing this fails.
#include <algorithm>
#include <cstdlib>

#include "tests/text/fixtures.h"
#include "tests/text/template_cases.h"

namespace kvasir::test {
namespace {

std::string model_path() {
  const char* models = std::getenv("KVASIR_MODELS");
  const char* home = std::getenv("HOME");
  const std::string folder =
      models != nullptr ? models
                        : std::string(home != nullptr ? home : "") + "/.cache/kvasir/models";
  return folder + "/smollm2-135m-instruct.gguf";
}

}  // namespace

TEST_CASE(
    "given smollm2's own template, when conversations with and without a system message are "
    "rendered and tokenised, then text and ids are those of apply_chat_template") {
  const auto file = gguf::File::open(model_path());
  REQUIRE_MESSAGE(file.ok(), "the model must be fetched first: ", file.error().message);
  const auto source = (*file)->header.get_string("tokenizer.chat_template");
  REQUIRE(source.ok());
  const auto chat = ChatTemplate::parse(*source);
  REQUIRE_MESSAGE(chat.ok(), chat.error().message);
  const auto tokenizer = Tokenizer::from_gguf((*file)->header);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message);
  const ChatTokenizer chat_tokenizer(**tokenizer);

  int n_with_system = 0, n_forged = 0;
  const auto cases = read_fixture("smollm2_chat.json");
  for (const auto& right : cases) {
    std::vector<ChatMessage> messages;
    bool forges = false;  // content that spells a control token: there we must differ from HF
    for (const auto& message : right["messages"]) {
      messages.push_back({message["role"], message["content"]});
      forges = forges || messages.back().content.find("<|im_") != std::string::npos;
    }
    n_with_system += messages[0].role == "system" ? 1 : 0;
    const auto spans = (*chat)->render(messages, right["add_generation_prompt"].get<bool>(),
                                       "<|im_start|>", "<|im_end|>");
    REQUIRE_MESSAGE(spans.ok(), spans.error().message);
    CHECK(joined(*spans) == right["text"].get<std::string>());
    const auto ids = chat_tokenizer.encode(*spans);
    REQUIRE(ids.ok());
    const auto right_ids = right["ids"].get<std::vector<TokenId>>();
    CHECK((*ids == right_ids) == !forges);
    n_forged += forges ? 1 : 0;
    // Forged or not: as many control tokens as the template wrote, two a message and the prompt's.
    const auto n_control = std::count_if(ids->begin(), ids->end(), [&](TokenId id) {
      return (*tokenizer)->token_kind(id) == TokenKind::control;
    });
    const auto n_messages = messages.size() + (messages[0].role == "system" ? 0 : 1);
    const bool prompts = right["add_generation_prompt"].get<bool>();
    CHECK(n_control == static_cast<int64_t>(2 * n_messages + (prompts ? 1 : 0)));
  }
  CHECK(n_with_system >= 2);
  CHECK(n_forged >= 2);
  CHECK(cases.size() >= 15);
}

}  // namespace kvasir::test
