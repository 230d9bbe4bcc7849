#include "cli/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "cli/terminal.h"

namespace kvasir::cli {
namespace {

/// Every line is a message.
class PipeLines final : public LineEditor {
 public:
  Input read(const std::string&) override {
    Input input;
    if (InterruptGuard::token().requested()) return {Input::Kind::interrupted, {}};
    if (!std::getline(std::cin, input.text)) return {Input::Kind::end, {}};
    if (!input.text.empty() && input.text.back() == '\r') input.text.pop_back();
    input.kind = Input::Kind::text;
    return input;
  }
};

bool input_waits(int milliseconds) {
  pollfd fd = {STDIN_FILENO, POLLIN, 0};
  return poll(&fd, 1, milliseconds) > 0;
}

/// libedit on a terminal.
class EditedLines final : public LineEditor {
 public:
  explicit EditedLines(std::string history_file) : history_file_(std::move(history_file)) {
    editor_ = el_init("kvasir", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &EditedLines::prompt_of);
    el_set(editor_, EL_HIST, &::history, history_);
    el_set(editor_, EL_GETCFN, &EditedLines::read_character);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~EditedLines() override {
    HistEvent event;
    if (!history_file_.empty()) history(history_, &event, H_SAVE, history_file_.c_str());
    history_end(history_);
    el_end(editor_);
  }

  Input read(const std::string& prompt) override {
    InterruptGuard::token().reset();
    std::string text;
    bool quoted = false;
    for (prompt_ = prompt;; prompt_ = "... ") {
      auto line = read_line();
      if (line.kind == Input::Kind::interrupted) return line;
      if (line.kind == Input::Kind::end) {
        if (text.empty() && !quoted) return line;
        break;
      }
      if (line.text == "\"\"\"") {
        quoted = !quoted;
        if (!quoted) break;
        continue;
      }
      const bool goes_on = !quoted && !line.text.empty() && line.text.back() == '\\';
      if (goes_on) line.text.pop_back();
      if (!text.empty()) text += '\n';
      text += line.text;
      // More input at once was pasted, not typed: it belongs to the same message.
      if (quoted || goes_on || input_waits(15)) continue;
      break;
    }
    if (!text.empty()) {
      HistEvent event;
      history(history_, &event, H_ENTER, text.c_str());
    }
    return {Input::Kind::text, text};
  }

 private:
  Input read_line() {
    interrupted_ = false;
    int length = 0;
    const char* line = el_gets(editor_, &length);
    if (interrupted_) {
      std::fputs("^C\n", stdout);
      return {Input::Kind::interrupted, {}};
    }
    if (line == nullptr || length <= 0) return {Input::Kind::end, {}};
    std::string text(line, static_cast<size_t>(length));
    if (text.back() == '\n') text.pop_back();
    return {Input::Kind::text, text};
  }

  static EditedLines* self(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<EditedLines*>(data);
  }
  static char* prompt_of(EditLine* editor) { return self(editor)->prompt_.data(); }

  /// One character of UTF-8. Ctrl-C ends the line; the reader drops it.
  static int read_character(EditLine* editor, wchar_t* character) {
    EditedLines* me = self(editor);
    uint32_t value = 0;
    int more = 0;
    for (;;) {
      if (InterruptGuard::token().requested()) {
        InterruptGuard::token().reset();
        me->interrupted_ = true;
        *character = L'\n';
        return 1;
      }
      unsigned char byte;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return static_cast<int>(n);
      if (more == 0) {
        if (byte < 0x80) {
          value = byte;
        } else if (byte >= 0xF0) {
          value = byte & 7U;
          more = 3;
        } else if (byte >= 0xE0) {
          value = byte & 15U;
          more = 2;
        } else {
          value = byte & 31U;
          more = 1;
        }
      } else {
        value = (value << 6) | (byte & 63U);
        --more;
      }
      if (more == 0) break;
    }
    *character = static_cast<wchar_t>(value);
    return 1;
  }

  std::string history_file_;
  std::string prompt_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  bool interrupted_ = false;
};

}  // namespace

std::unique_ptr<LineEditor> LineEditor::create(const std::string& history_file) {
  if (!stdin_is_terminal()) return std::make_unique<PipeLines>();
  if (!history_file.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_file).parent_path(), ignored);
  }
  return std::make_unique<EditedLines>(history_file);
}

}  // namespace kvasir::cli
