// kvasir chat: a conversation in the terminal.
#include "cli/chat.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

#include "cli/commands.h"
#include "cli/line_editor.h"
#include "cli/loading.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "core/base/error.h"

namespace kvasir::cli {
namespace {

constexpr const char* kDefaultModel = "smollm2-135m-instruct";

struct Options {
  std::string model = kDefaultModel;
  std::optional<std::string> once;
  std::string system;
  SamplingOptions sampling;
  LengthOptions length;
  ComputeOptions compute;
  bool no_stats = false;
};

/// $XDG_STATE_HOME/kvasir/history, else ~/.local/state/kvasir/history, else none.
std::string history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/kvasir/history";
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.local/state/kvasir/history";
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

/// "~/x" -> "$HOME/x", as a shell would have done.
std::string expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

enum class Next { go_on, failed, leave };

Next next_after(Chat::Outcome outcome) {
  if (outcome == Chat::Outcome::failed) return Next::failed;
  // Ctrl-C stops the answer; a script, which cannot go on with the next line knowingly, ends.
  return outcome == Chat::Outcome::cancelled && !stdin_is_terminal() ? Next::leave : Next::go_on;
}

Next report(const Status& status, const std::string& success) {
  if (!status) return fail(status.error()), Next::failed;
  note(success);
  return Next::go_on;
}

struct Command {
  const char* name;
  const char* argument;  ///< as help shows it; in brackets when it may be left out
  const char* help;
  Next (*run)(Chat& chat, const std::string& argument);
};

Next show_help(Chat&, const std::string&);

Next set_stats(Chat& chat, const std::string& argument) {
  if (!argument.empty() && argument != "on" && argument != "off")
    return note("[/stats takes on or off]"), Next::failed;
  chat.set_figures(argument.empty() ? !chat.figures() : argument == "on");
  return note(chat.figures() ? "[figures on]" : "[figures off]"), Next::go_on;
}

Next save(Chat& chat, const std::string& file) {
  const auto status = chat.save(expanded(file));
  return report(status, fmt::format("[saved {} messages]", chat.conversation().messages().size()));
}

Next load(Chat& chat, const std::string& file) {
  const auto status = chat.load(expanded(file));
  return report(status, fmt::format("[loaded {} messages]", chat.conversation().messages().size()));
}

constexpr Command kCommands[] = {
    {"/help", "", "this list", show_help},
    {"/clear", "", "forget the conversation; the system message stays",
     [](Chat& chat, const std::string&) {
       chat.conversation().clear();
       return note("[cleared]"), Next::go_on;
     }},
    {"/undo", "", "take back the last question and its answer",
     [](Chat& chat, const std::string&) {
       const bool undone = chat.conversation().undo();
       return note(undone ? "[took back the last question]" : "[there is nothing to take back]"),
              Next::go_on;
     }},
    {"/regen", "", "answer the last question again, with the next seed",
     [](Chat& chat, const std::string&) { return next_after(chat.regenerate()); }},
    {"/system", "[TEXT]", "set the system message from the next answer on; no TEXT: remove it",
     [](Chat& chat, const std::string& text) {
       chat.conversation().set_system(text);
       return note(text.empty() ? "[no system message]" : "[system message set]"), Next::go_on;
     }},
    {"/save", "FILE", "write the conversation to a file", save},
    {"/load", "FILE", "go on with a saved conversation", load},
    {"/stats", "[on|off]", "show or hide the figures after each answer", set_stats},
    {"/quit", "", "leave (also Ctrl-D)", [](Chat&, const std::string&) { return Next::leave; }},
};

Next show_help(Chat&, const std::string&) {
  std::string text;
  for (const auto& command : kCommands)
    text += fmt::format("{:<8} {:<9} {}\n", command.name, command.argument, command.help);
  note(text +
       "Ctrl-C stops an answer. Several lines: paste them, end lines with \\, or put \"\"\" around "
       "them.\nA space before / makes it part of a message.");
  return Next::go_on;
}

Next run_command(Chat& chat, const std::string& line) {
  const auto space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : trimmed(line.substr(space));
  for (const auto& command : kCommands) {
    if (name != command.name) continue;
    const std::string_view takes = command.argument;
    if (takes.empty() && !argument.empty())
      return note(fmt::format("[{} takes no argument]", name)), Next::failed;
    if (!takes.empty() && takes[0] != '[' && argument.empty())
      return note(fmt::format("[{} needs {}]", name, takes)), Next::failed;
    return command.run(chat, argument);
  }
  return note(fmt::format("[unknown command {}; /help lists them]", printable(name))), Next::failed;
}

/// A command, or a message to answer.
Next respond(Chat& chat, const std::string& text) {
  if (trimmed(text).empty()) return Next::go_on;
  const bool is_command = text[0] == '/' && text.find('\n') == std::string::npos;
  return is_command ? run_command(chat, trimmed(text)) : next_after(chat.answer(text));
}

int exit_code_of(bool failed) {
  if (const int written = finish_output(); written != kExitOk) return written;
  if (InterruptGuard::token().requested()) return kExitInterrupted;
  return failed ? kExitError : kExitOk;
}

/// Until the end of the input. Returns the exit code.
int loop(Chat& chat) {
  auto editor = LineEditor::create(history_file());
  bool failed = false;
  bool interrupted_before = false;
  for (;;) {
    const Input input = editor->read();
    if (input.kind == Input::Kind::end) break;
    if (input.kind == Input::Kind::interrupted) {
      if (!stdin_is_terminal()) break;
      InterruptGuard::reset();
      if (interrupted_before) break;
      interrupted_before = true;
      note("[Ctrl-C again or Ctrl-D leaves]");
      continue;
    }
    interrupted_before = false;
    const Next next = respond(chat, input.text);
    failed = failed || next == Next::failed;
    if (next == Next::leave) break;
  }
  if (stdin_is_terminal()) InterruptGuard::reset();  // the person has seen what happened
  return exit_code_of(failed && !stdin_is_terminal());
}

int run(Options options) {
  std::string system;
  if (!options.system.empty()) {
    auto text = text_or_file(options.system);
    if (!text) return fail(text.error());
    system = std::move(*text);
  }
  auto ready = load_for(options.model, options.compute.engine());
  if (!ready) return fail(ready.error());
  if (ready->loaded->chat_template == nullptr) {
    return fail({ErrorCode::unsupported, ready->loaded->chat_template_error +
                                             "; `kvasir generate --raw` works without one"});
  }
  auto session = Session::create(ready->engine);
  if (!session) return fail(session.error());
  if (!options.sampling.seed_given) options.sampling.parameters.seed = std::random_device{}();
  auto how = generate_options(options.sampling, options.length, *ready->loaded->tokenizer);
  const double load_s = ready->load_s;
  Chat chat(std::move(*ready), std::move(*session), std::move(how), !options.no_stats);
  chat.conversation().set_system(std::move(system));
  const InterruptGuard guard;
  if (options.once) return exit_code_of(chat.answer(*options.once) == Chat::Outcome::failed);
  if (stdin_is_terminal()) {
    note(fmt::format("{}, loaded in {:.2f} s, seed {}. /help lists the commands.",
                     printable(chat.model().name), load_s, options.sampling.parameters.seed));
  }
  return loop(chat);
}

}  // namespace

void add_chat(CLI::App& app, Run& run_later) {
  auto* command = app.add_subcommand("chat", "talk with a model");
  auto options = std::make_shared<Options>();
  options->sampling.parameters.temperature = 0.7F;
  options->sampling.parameters.top_p = 0.95F;
  options->sampling.parameters.min_p = 0.05F;
  declare_model(*command, options->model)->capture_default_str();
  add_text(*command, "-p,--prompt", options->once, "TEXT", "answer this and exit");
  declare_system(*command, options->system);
  options->length.declare(*command);
  options->sampling.declare(*command, SamplingOptions::Seed::drawn);
  options->compute.declare(*command);
  command->add_flag("--no-stats", options->no_stats, "no figures after the answers");
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli
