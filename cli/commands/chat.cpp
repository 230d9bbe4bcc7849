// kvasir chat: a conversation in the terminal.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/line_editor.h"
#include "cli/loading.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/base/error.h"
#include "core/engine/conversation.h"
#include "core/engine/machine_limits.h"
#include "core/files/atomic_file.h"

namespace kvasir::cli {
namespace {

constexpr const char* kDefaultModel = "smollm2-135m-instruct";
constexpr int kSavedVersion = 1;
constexpr const char* kHelp =
    "/help            this list\n"
    "/clear           forget the conversation (the system message stays)\n"
    "/undo            take back the last question and its answer\n"
    "/regen           answer the last question again, with another seed\n"
    "/system [TEXT]   set the system message (no text: remove it); clears the conversation\n"
    "/save FILE       write the conversation to a file\n"
    "/load FILE       go on from a saved conversation\n"
    "/stats [on|off]  show or hide the figures after each answer\n"
    "/quit            leave (also Ctrl-D)\n"
    "Ctrl-C stops an answer. Several lines: paste them, end lines with \\, or put \"\"\" around them.";

struct Options {
  std::string model = kDefaultModel;
  std::optional<std::string> once;
  std::string system;
  SamplingOptions sampling;
  ComputeOptions compute;
  int64_t max_tokens = 0;
  std::vector<std::string> stops;
  bool no_stats = false;
  bool seed_given = false;
};

std::string history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return std::string(state) + "/kvasir/history";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.local/state/kvasir/history";
}

class Chat {
 public:
  Chat(Ready ready, std::unique_ptr<Session> session, const Options& options)
      : ready_(std::move(ready)),
        session_(std::move(session)),
        conversation_(*session_, *ready_.loaded->tokenizer, *ready_.loaded->chat_template),
        show_statistics_(!options.no_stats) {
    generate_.sampling = options.sampling.parameters;
    generate_.max_tokens = options.max_tokens;
    generate_.stop_strings = options.stops;
    const auto ends = ready_.loaded->tokenizer->end_tokens();
    generate_.end_tokens.assign(ends.begin(), ends.end());
  }

  Conversation& conversation() { return conversation_; }

  /// Answers `text`; false when that failed (said so already).
  bool answer(const std::string& text) {
    return show([&](const GenerateCallbacks& callbacks) {
      return conversation_.send(text, generate_, callbacks, &InterruptGuard::token());
    });
  }

  /// Reads and answers until the end. Returns the exit code.
  int loop() {
    auto editor = LineEditor::create(history_file());
    bool interrupted_before = false;
    for (;;) {
      const Input input = editor->read("> ");
      if (input.kind == Input::Kind::end) break;
      if (input.kind == Input::Kind::interrupted) {
        if (interrupted_before || !stdin_is_terminal()) break;
        interrupted_before = true;
        note("Ctrl-C again or Ctrl-D to leave");
        continue;
      }
      interrupted_before = false;
      const std::string text = trimmed(input.text);
      if (text.empty()) continue;
      if (text[0] == '/') {
        if (!command(text)) break;
      } else {
        failed_ = !answer(input.text) || failed_;
      }
    }
    const int written = finish_output();
    // A script that pipes lines in wants to know; a person has seen it.
    return written != kExitOk ? written : (failed_ && !stdin_is_terminal() ? kExitError : kExitOk);
  }

 private:
  static std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\n");
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
  }

  template <class Make>
  bool show(const Make& make) {
    InterruptGuard::token().reset();
    AnswerPrinter printer(true);
    const auto callbacks = printer.callbacks();
    auto generation = make(callbacks);
    printer.finish();
    if (!generation) {
      fail(generation.error());
      if (generation.error().code == ErrorCode::limit_exceeded) offer_room();
      return false;
    }
    print("\n");
    if (generation->finish_reason == FinishReason::cancelled) note("[stopped]");
    if (generation->finish_reason == FinishReason::context_full) {
      note(fmt::format("[the context of {} tokens is full]", session_->context_tokens()));
      offer_room();
    }
    if (show_statistics_) print_statistics(*generation);
    return true;
  }

  void offer_room() { note("/clear or /undo makes room; --ctx N at the start gives more"); }

  void print_statistics(const Generation& g) {
    if (bandwidth_ == 0) {
      auto threads = Threads::create(ready_.engine->threads());
      bandwidth_ = measure_read_bandwidth(ready_.engine->model().weight_memory(), *threads, 3);
    }
    const double gb = gb_per_s(g.decode.forward);
    bandwidth_ = std::max(bandwidth_, gb * 1e9);
    note(fmt::format(
        "[{} tokens | prompt {} evaluated, {} cached, {:.0f} tokens/s | decode {:.0f} tokens/s, "
        "{:.1f} GB/s = {:.0f}% of {:.1f} | logits {} | {} math, {}, {} threads]",
        g.tokens.size(), g.prefill.tokens_evaluated, g.prefill.tokens_cached, tokens_per_s(g.prefill),
        tokens_per_s(g.decode), gb, 100 * gb * 1e9 / bandwidth_, bandwidth_ / 1e9,
        hash_text(session_->logits_hash()),
        ready_.engine->options().math == MathMode::fast ? "fast" : "reproducible",
        ready_.engine->model().kernels_name(), ready_.engine->threads()));
  }

  /// False: leave.
  bool command(const std::string& line) {
    const auto space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string argument = space == std::string::npos ? "" : trimmed(line.substr(space));
    if (name == "/quit" || name == "/exit") return false;
    if (name == "/help") {
      note(kHelp);
    } else if (name == "/clear") {
      conversation_.clear();
      note("[cleared]");
    } else if (name == "/undo") {
      note(conversation_.undo() ? "[took back the last question]" : "[nothing to take back]");
    } else if (name == "/regen") {
      generate_.sampling.seed++;
      show([&](const GenerateCallbacks& callbacks) {
        return conversation_.regenerate(generate_, callbacks, &InterruptGuard::token());
      });
    } else if (name == "/system") {
      conversation_.clear();
      conversation_.set_system(argument);
      note(argument.empty() ? "[no system message]" : "[system message set, conversation cleared]");
    } else if (name == "/stats") {
      show_statistics_ = argument.empty() ? !show_statistics_ : argument == "on";
      note(show_statistics_ ? "[figures on]" : "[figures off]");
    } else if (name == "/save" || name == "/load") {
      if (argument.empty()) {
        note(name + " needs the name of a file");
      } else {
        const Status status = name == "/save" ? save(argument) : load(argument);
        if (!status) fail(status.error());
        else note(fmt::format("[{} {} messages]", name == "/save" ? "saved" : "loaded",
                              conversation_.messages().size()));
      }
    } else {
      note(fmt::format("unknown command {}; /help lists them", printable(name)));
    }
    return true;
  }

  Status save(const std::string& path) {
    const auto& s = generate_.sampling;
    const Json json = {{"kvasir_chat", kSavedVersion},
                       {"model", ready_.loaded->name},
                       {"sampling", {{"temperature", s.temperature}, {"top_k", s.top_k}, {"top_p", s.top_p},
                                     {"min_p", s.min_p}, {"seed", s.seed}}},
                       {"messages", messages_to_json(conversation_.messages())}};
    auto file = AtomicFile::create(path);
    if (!file) return std::move(file).error();
    if (auto status = file->write(to_text(json, 2) + "\n"); !status) return status;
    return file->commit();
  }

  Status load(const std::string& path) {
    auto text = read_text(path);
    if (!text) return std::move(text).error();
    const Json json = Json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("kvasir_chat"))
      return make_error(ErrorCode::corrupt_file, "'{}' is not a saved conversation", path);
    if (json["kvasir_chat"] != kSavedVersion) {
      return make_error(ErrorCode::unsupported, "'{}' has format version {}; this program reads {}", path,
                        to_text(json["kvasir_chat"]), kSavedVersion);
    }
    if (!json.contains("messages"))
      return make_error(ErrorCode::corrupt_file, "'{}' has no 'messages'", path);
    auto messages = messages_from_json(json["messages"], "'" + path + "'");
    if (!messages) return std::move(messages).error();
    if (json.value("model", "") != ready_.loaded->name)
      warn(fmt::format("'{}' was saved with another model", path));
    conversation_.set_messages(std::move(*messages));
    return {};
  }

  Ready ready_;
  std::unique_ptr<Session> session_;
  Conversation conversation_;
  GenerateOptions generate_;
  bool show_statistics_;
  bool failed_ = false;
  double bandwidth_ = 0;
};

int run(Options options) {
  auto ready = load_for(options.model, options.compute.engine());
  if (!ready) return fail(ready.error());
  if (ready->loaded->chat_template == nullptr) {
    return fail({ErrorCode::unsupported, ready->loaded->chat_template_error +
                                             "; `kvasir generate --raw` works without one"});
  }
  auto session = Session::create(ready->engine);
  if (!session) return fail(session.error());
  if (!options.seed_given) options.sampling.parameters.seed = std::random_device{}();
  const auto name = ready->loaded->name;
  const double load_s = ready->load_s;
  Chat chat(std::move(*ready), std::move(*session), options);
  if (!options.system.empty()) {
    auto system = text_or_file(options.system);
    if (!system) return fail(system.error());
    chat.conversation().set_system(std::move(*system));
  }
  const InterruptGuard guard;
  if (options.once) {
    const bool answered = chat.answer(*options.once);
    const int written = finish_output();
    if (!answered || written != kExitOk) return kExitError;
    return InterruptGuard::token().requested() ? kExitInterrupted : kExitOk;
  }
  if (stdin_is_terminal()) {
    note(fmt::format("{} (loaded in {:.2f} s, seed {}). /help lists the commands.", printable(name),
                     load_s, options.sampling.parameters.seed));
  }
  return chat.loop();
}

}  // namespace

void add_chat(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("chat", "talk with a model");
  auto options = std::make_shared<Options>();
  options->sampling.parameters.temperature = 0.7F;
  options->sampling.parameters.top_p = 0.95F;
  options->sampling.parameters.min_p = 0.05F;
  declare_model(*command, options->model, false);
  command->add_option("-p,--prompt", options->once, "answer this once and exit")->type_name("TEXT");
  command->add_option("--system", options->system, "system message, or @FILE")->type_name("TEXT");
  command->add_option("--max-tokens", options->max_tokens, "most tokens of one answer; 0: until the context is full")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))->capture_default_str()->type_name("N");
  command->add_option("--stop", options->stops, "text that ends an answer (repeatable)")
      ->type_name("S")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  options->sampling.declare(*command);
  command->get_option("--seed")->description("seed of the random draws (default: another one each time, shown at the start)");
  options->compute.declare(*command);
  command->add_flag("--no-stats", options->no_stats, "no figures after the answers");
  command->callback([options, command, &exit_code] {
    options->seed_given = command->count("--seed") > 0;
    exit_code = run(*options);
  });
}

}  // namespace kvasir::cli
