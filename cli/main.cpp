// kvasir: language models on the CPU, from the command line.
#include <clocale>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "kvasir/version.h"

int main(int argc, char** argv) {
  using namespace kvasir::cli;  // NOLINT
  // Line editing needs to know what a character is; the library never looks at the locale.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");

  CLI::App app("Runs language models on the CPU. One prompt, one answer: the same bits on every machine.",
               "kvasir");
  app.set_version_flag("--version", std::string("kvasir ") + KVASIR_VERSION);
  app.require_subcommand(1);
  app.footer("Environment: KVASIR_ISA forces a kernel table (see `kvasir system`); KVASIR_MODELS is the folder of models.");
  int exit_code = kExitOk;
  add_chat(app, exit_code);
  add_generate(app, exit_code);
  add_tokenize(app, exit_code);
  add_logits(app, exit_code);
  add_inspect(app, exit_code);
  add_system(app, exit_code);
  add_bench(app, exit_code);
  add_list(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? finish_output() : kExitUsage;
  } catch (const std::bad_alloc&) {
    return fail({kvasir::ErrorCode::out_of_memory, "out of memory"});
  } catch (const std::exception& error) {
    return fail({kvasir::ErrorCode::internal, error.what()});
  }
  return exit_code;
}
