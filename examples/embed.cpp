// A conversation in another program: c++ -std=c++20 embed.cpp $(pkg-config --cflags --libs kvasir)
// Usage: embed MODEL QUESTION...
#include <cstdio>
#include <kvasir/kvasir.hpp>

namespace {

int complain(const kvasir::Error& error) {
  std::fprintf(stderr, "embed: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed MODEL QUESTION...\n");
    return 2;
  }
  auto model = kvasir::LanguageModel::load(argv[1]);
  if (!model) return complain(model.error());
  auto chat = model->start_chat();
  if (!chat) return complain(chat.error());

  kvasir::ReplyOptions options;
  options.temperature = 0;
  options.max_tokens = 40;
  const auto show = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  for (int i = 2; i < argc; ++i) {
    auto reply = chat->send(argv[i], options, show);
    if (!reply) return complain(reply.error());
    std::printf("\n[%lld of %lld prompt tokens were known]\n",
                static_cast<long long>(reply->prompt_tokens_cached),
                static_cast<long long>(reply->prompt_tokens));
  }
  return 0;
}
