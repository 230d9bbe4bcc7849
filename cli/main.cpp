// kvasir: language models on the CPU, from the command line.
#include <fcntl.h>
#include <kvasir/version.h>
#include <signal.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <sstream>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/engine/kernel_choice.h"

namespace kvasir::cli {
namespace {

/// A closed standard stream would give its number to the next file that is opened, and results
/// would be written into that file. Closed input reads as empty; closed output cannot be written
/// (open for reading only), so that losing results is an error.
void open_standard_streams() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", kModes[fd]);  // the lowest free number
  }
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  std::string message = error.what();
  const auto unknown = app.remaining();
  if (chosen.empty() && !unknown.empty()) message = "there is no command '" + unknown[0] + "'";
  while (!message.empty() && message.back() == '\n') message.pop_back();
  fail({ErrorCode::invalid_argument, message + " (see kvasir " +
                                         (chosen.empty() ? "" : chosen.back()->get_name() + " ") +
                                         "--help)"});
  return kExitUsage;
}

int run_command_line(int argc, char** argv) {
  CLI::App app(
      "Runs language models on the CPU. One prompt, one answer: the same bits on every machine.",
      "kvasir");
  app.set_version_flag("--version", std::string("kvasir ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Environment:\n"
      "  KVASIR_ISA      forces a set of kernels (`kvasir system` lists them)\n"
      "  KVASIR_MODELS   the folder of models (default: ~/.cache/kvasir/models)\n"
      "Exit codes: 0 done, 1 error, 2 wrong usage, 130 stopped by Ctrl-C.");
  Run run;
  add_chat(app, run);
  add_generate(app, run);
  add_tokenize(app, run);
  add_logits(app, run);
  add_inspect(app, run);
  add_system(app, run);
  add_bench(app, run);
  add_perplexity(app, run);
  add_list(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return usage_error(app, error);
    std::ostringstream out, ignored;  // --help or --version
    app.exit(error, out, ignored);
    print(out.str());
    return finish_output();
  }
  // A set of kernels that this CPU lacks is refused even where none would be used.
  if (auto kernels = choose_kernels(); !kernels) return fail(kernels.error());
  return run();
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) {
  using namespace kvasir;  // NOLINT
  cli::open_standard_streams();
  // A reader that went away is an error like any other that writing may have.
  signal(SIGPIPE, SIG_IGN);
  // Line editing needs to know what a character is; the library never looks at the locale.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
    std::setlocale(LC_CTYPE, "C.UTF-8");
  try {
    return cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    return cli::fail({ErrorCode::out_of_memory, "out of memory"});
  } catch (const std::exception& error) {
    return cli::fail({ErrorCode::internal, error.what()});
  }
}
