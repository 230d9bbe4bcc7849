#include "cli/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <unistd.h>

#include <cstdio>
#include <cwchar>
#include <filesystem>

#include "cli/terminal.h"
#include "core/text/utf8.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kPasteBegins = "\x1b[200~";  // "bracketed paste", as xterm defines it
constexpr std::string_view kPasteEnds = "\x1b[201~";
constexpr const char* kMarkPastes = "\x1b[?2004h";
constexpr const char* kPlainPastes = "\x1b[?2004l";

/// Bytes of stdin; Ctrl-C ends the waiting.
class Bytes {
 public:
  enum class Got { byte, interrupted, end };
  Got next(char& byte) {
    for (;;) {
      if (at_ < buffer_.size()) {
        byte = buffer_[at_++];
        return Got::byte;
      }
      if (!InterruptGuard::wait_for_input()) return Got::interrupted;
      buffer_.resize(capacity_);
      const ssize_t n = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
      buffer_.resize(n > 0 ? static_cast<size_t>(n) : 0);
      at_ = 0;
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return Got::end;
    }
  }
  /// Terminals are read byte by byte: what comes after a line may be for another program.
  explicit Bytes(size_t capacity) : capacity_(capacity) {}

 private:
  size_t capacity_;
  std::string buffer_;
  size_t at_ = 0;
};

/// Every line is a message.
class PipeLines final : public LineEditor {
 public:
  Input read() override {
    std::string text;
    for (char byte;;) {
      const auto got = bytes_.next(byte);
      if (got == Bytes::Got::interrupted) return {Input::Kind::interrupted, {}};
      if (got == Bytes::Got::end && text.empty()) return {Input::Kind::end, {}};
      if (got == Bytes::Got::end || byte == '\n') break;
      text += byte;
    }
    if (!text.empty() && text.back() == '\r') text.pop_back();
    return {Input::Kind::text, std::move(text)};
  }

 private:
  Bytes bytes_{65536};
};

/// Pasted text as it may stand in a message: line breaks as \n, no control characters, whole UTF-8.
std::string cleaned(std::string_view pasted) {
  std::string text;
  for (char c : pasted) {
    if (c == '\r') c = '\n';  // terminals send it for both
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7F) || c == '\n' || c == '\t') text += c;
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  Utf8Assembler assembler;
  return assembler.push(text) + assembler.finish();
}

/// libedit on a terminal.
class EditedLines final : public LineEditor {
 public:
  /// Null when libedit cannot serve this terminal.
  static std::unique_ptr<LineEditor> create(const std::string& history_file) {
    std::unique_ptr<EditedLines> lines(new EditedLines(history_file));
    if (lines->editor_ == nullptr || lines->history_ == nullptr) return nullptr;
    lines->set_up();
    return lines;
  }
  ~EditedLines() override {
    HistEvent event;
    if (history_ != nullptr) {
      if (!history_file_.empty()) ::history(history_, &event, H_SAVE, history_file_.c_str());
      history_end(history_);
    }
    if (editor_ != nullptr) el_end(editor_);
  }

  Input read() override {
    InterruptGuard::reset();
    std::string text;
    bool quoted = false;
    for (bool first = true;; first = false) {
      prompt_ = first ? "> " : "... ";
      Input line = read_line();
      if (line.kind == Input::Kind::interrupted) return line;
      if (line.kind == Input::Kind::end) {
        if (first) return line;
        break;
      }
      if (!first) text += '\n';
      if (first && line.text.starts_with(kQuotes)) {
        quoted = true;
        line.text.erase(0, kQuotes.size());
      }
      const bool closes = quoted && line.text.ends_with(kQuotes);
      if (closes) line.text.resize(line.text.size() - kQuotes.size());
      const bool goes_on = !quoted && line.text.ends_with('\\');
      if (goes_on) line.text.pop_back();
      text += line.text;
      if (quoted ? closes : !goes_on) break;
    }
    HistEvent event;
    if (!text.empty()) ::history(history_, &event, H_ENTER, text.c_str());
    return {Input::Kind::text, std::move(text)};
  }

 private:
  explicit EditedLines(std::string history_file)
      : history_file_(std::move(history_file)),
        screen_(stdout_is_terminal() ? stdout : stderr),  // results may go to a file
        editor_(el_init("kvasir", stdin, screen_, stderr)),
        history_(history_init()) {}

  void set_up() {
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, 1000);
    ::history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) ::history(history_, &event, H_LOAD, history_file_.c_str());
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_PROMPT, &EditedLines::prompt_of);
    el_set(editor_, EL_HIST, &::history, history_);
    el_set(editor_, EL_GETCFN, &EditedLines::read_character);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // The wide form keeps these pointers; the narrow one leaks copies of its own.
    el_wset(editor_, EL_ADDFN, L"kvasir-paste", L"insert pasted text", &EditedLines::paste);
    el_set(editor_, EL_BIND, kPasteBegins, "kvasir-paste", nullptr);
  }

  void tell_terminal(const char* sequence) {
    std::fputs(sequence, screen_);
    std::fflush(screen_);
  }

  Input read_line() {
    interrupted_ = false;
    el_resize(editor_);
    // Before the prompt is shown, not after: else a quick Ctrl-D would still go to the terminal.
    el_set(editor_, EL_PREP_TERM, 1);
    tell_terminal(kMarkPastes);
    int length = 0;
    const char* line = el_gets(editor_, &length);
    tell_terminal(kPlainPastes);
    if (interrupted_) return {Input::Kind::interrupted, {}};
    if (line == nullptr || length <= 0) {
      tell_terminal("\n");
      return {Input::Kind::end, {}};
    }
    std::string text(line, static_cast<size_t>(length));
    if (text.back() == '\n') text.pop_back();
    return {Input::Kind::text, std::move(text)};
  }

  static EditedLines* self(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<EditedLines*>(data);
  }
  static char* prompt_of(EditLine* editor) { return self(editor)->prompt_.data(); }

  /// One character; what is not UTF-8 becomes U+FFFD. Ctrl-C ends the line, `read_line` drops it.
  static int read_character(EditLine* editor, wchar_t* character) {
    EditedLines* me = self(editor);
    Utf8Assembler assembler;
    for (char byte;;) {
      const auto got = me->interrupted_ ? Bytes::Got::interrupted : me->bytes_.next(byte);
      if (got == Bytes::Got::end) return 0;
      if (got == Bytes::Got::interrupted) {
        me->interrupted_ = true;
        *character = L'\n';
        return 1;
      }
      const std::string whole = assembler.push({&byte, 1});
      if (whole.empty()) continue;
      // A byte that interrupted an unfinished character may come with its replacement; one of the
      // two is enough on a keyboard.
      wchar_t wide = 0;
      std::mbstate_t state{};
      const size_t used = std::mbrtowc(&wide, whole.data(), whole.size(), &state);
      *character = used <= whole.size() ? wide : static_cast<wchar_t>(0xFFFD);
      return 1;
    }
  }

  static unsigned char paste(EditLine* editor, int) {
    EditedLines* me = self(editor);
    std::string pasted;
    for (char byte; !pasted.ends_with(kPasteEnds);) {
      const auto got = me->bytes_.next(byte);
      if (got == Bytes::Got::interrupted) me->interrupted_ = true;
      if (got != Bytes::Got::byte) return CC_REFRESH;
      pasted += byte;
    }
    pasted.resize(pasted.size() - kPasteEnds.size());
    const std::string text = cleaned(pasted);
    if (!text.empty() && el_insertstr(editor, text.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }

  std::string history_file_;
  std::FILE* screen_;
  EditLine* editor_;
  History* history_;
  Bytes bytes_{1};
  std::string prompt_;
  bool interrupted_ = false;
};

}  // namespace

std::unique_ptr<LineEditor> LineEditor::create(const std::string& history_file) {
  if (!stdin_is_terminal()) return std::make_unique<PipeLines>();
  if (!history_file.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_file).parent_path(), ignored);
  }
  if (auto lines = EditedLines::create(history_file)) return lines;
  return std::make_unique<PipeLines>();
}

}  // namespace kvasir::cli
