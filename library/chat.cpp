#include "library/guard.h"
#include "library/parts.h"

namespace kvasir {

Chat::Chat(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;
Chat::~Chat() = default;

Result<Reply> Chat::send(std::string text, const ReplyOptions& options, const OnText& on_text,
                         const CancelToken* cancel) {
  return guarded([&]() -> Result<Reply> {
    if (auto s = check(options); !s) return std::move(s).error();
    const auto how = to_generate_options(options, *impl_->model->loaded->tokenizer);
    auto generation = impl_->conversation.send(std::move(text), how, {on_text, {}}, cancel);
    if (!generation) return std::move(generation).error();
    return to_reply(std::move(*generation), *impl_->session);
  });
}

Result<Reply> Chat::regenerate(const ReplyOptions& options, const OnText& on_text,
                               const CancelToken* cancel) {
  return guarded([&]() -> Result<Reply> {
    if (auto s = check(options); !s) return std::move(s).error();
    const auto how = to_generate_options(options, *impl_->model->loaded->tokenizer);
    auto generation = impl_->conversation.regenerate(how, {on_text, {}}, cancel);
    if (!generation) return std::move(generation).error();
    return to_reply(std::move(*generation), *impl_->session);
  });
}

bool Chat::undo() noexcept {
  return impl_->conversation.undo();
}
void Chat::clear() noexcept {
  impl_->conversation.clear();
}

Status Chat::set_system(std::string text) {
  return guarded([&] {
    impl_->conversation.set_system(std::move(text));
    return Status();
  });
}

Result<std::vector<Message>> Chat::messages() const {
  return guarded([&]() -> Result<std::vector<Message>> {
    std::vector<Message> all;
    for (const auto& m : impl_->conversation.messages()) all.push_back({m.role, m.content});
    return all;
  });
}

Status Chat::set_messages(const std::vector<Message>& messages) {
  return guarded([&] {
    std::vector<ChatMessage> all;
    for (const auto& m : messages) all.push_back({m.role, m.content});
    impl_->conversation.set_messages(std::move(all));
    return Status();
  });
}

}  // namespace kvasir
