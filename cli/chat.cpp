#include "cli/chat.h"

#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/engine/machine_limits.h"

namespace kvasir::cli {
namespace {

void offer_room() {
  note("[/undo or /clear makes room; --ctx N at the start gives more]");
}

}  // namespace

Chat::Chat(Ready ready, std::unique_ptr<Session> session, GenerateOptions options, bool figures)
    : ready_(std::move(ready)),
      session_(std::move(session)),
      conversation_(*session_, *ready_.loaded->tokenizer, *ready_.loaded->chat_template),
      options_(std::move(options)),
      figures_(figures) {}

template <class Make>
Chat::Outcome Chat::show(const Make& make) {
  InterruptGuard::reset();
  AnswerPrinter printer(AnswerPrinter::Text::shown);
  auto generation = make(printer.callbacks());
  if (!generation) {
    printer.abandon();
    fail(generation.error());
    if (generation.error().code == ErrorCode::limit_exceeded) offer_room();
    return Outcome::failed;
  }
  printer.finish();
  const bool cancelled = generation->finish_reason == FinishReason::cancelled;
  if (cancelled) note("[stopped]");
  if (generation->finish_reason == FinishReason::context_full) {
    note(fmt::format("[the context of {} tokens is full]", session_->context_tokens()));
    offer_room();
  }
  if (figures_) print_figures(*generation);
  return cancelled ? Outcome::cancelled : Outcome::answered;
}

Chat::Outcome Chat::answer(const std::string& text) {
  return show([&](const GenerateCallbacks& callbacks) {
    return conversation_.send(text, options_, callbacks, &InterruptGuard::token());
  });
}

Chat::Outcome Chat::regenerate() {
  options_.sampling.seed++;
  if (options_.sampling.temperature == 0) note("[at temperature 0 the answer is always the same]");
  return show([&](const GenerateCallbacks& callbacks) {
    return conversation_.regenerate(options_, callbacks, &InterruptGuard::token());
  });
}

void Chat::print_figures(const Generation& g) {
  const Engine& engine = *ready_.engine;
  if (read_bytes_per_s_ == 0) {
    auto threads = Threads::create(engine.threads());
    read_bytes_per_s_ = measure_read_bandwidth(engine.model().weight_memory(), *threads, 3);
  }
  // A limit below what was reached was not the limit: the machine was busy while measuring it.
  const double reached = gb_per_s(g.decode.forward) * 1e9;
  read_bytes_per_s_ = std::max(read_bytes_per_s_, reached);
  std::string line =
      fmt::format("[{} tokens | prompt: {} evaluated, {} cached, {:.0f} tokens/s", g.tokens.size(),
                  g.prefill.tokens_evaluated, g.prefill.tokens_cached, tokens_per_s(g.prefill));
  if (g.prefill.tokens_reevaluated > 0)
    line += fmt::format(" ({} again: the window had passed)", g.prefill.tokens_reevaluated);
  if (g.decode.tokens_evaluated > 0) {
    line += fmt::format(" | decode: {:.0f} tokens/s, {:.1f} GB/s = {:.0f}% of {:.1f}",
                        tokens_per_s(g.decode), reached / 1e9, 100 * reached / read_bytes_per_s_,
                        read_bytes_per_s_ / 1e9);
  }
  if (!session_->logits().empty()) line += " | logits " + hash_text(session_->logits_hash());
  if (options_.sampling.temperature > 0) line += fmt::format(" | seed {}", options_.sampling.seed);
  note(line + fmt::format(" | {} math, {}, {} threads]", math_name(engine),
                          engine.model().kernels_name(), engine.threads()));
}

ModelMark Chat::mark() const {
  return {ready_.loaded->name, ready_.loaded->architecture, ready_.loaded->model->n_vocab(),
          ready_.loaded->model->weight_bytes()};
}

Status Chat::save(const std::string& path) const {
  return write_saved_chat(path, {mark(), options_.sampling, conversation_.messages()});
}

Status Chat::load(const std::string& path) {
  auto saved = read_saved_chat(path);
  if (!saved) return std::move(saved).error();
  if (saved->model != mark()) {
    warn(fmt::format("'{}' was saved with another model ('{}'): answers will differ", path,
                     saved->model.name));
  }
  conversation_.set_messages(std::move(saved->messages));
  options_.sampling = saved->sampling;
  return {};
}

}  // namespace kvasir::cli
