// What one rendering may spend, and the first thing that went wrong in it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace kvasir::jinja {

/// One step is about one evaluated node, 64 bytes looked at or 16 list items copied: 20 to 60 ns on
/// a 2020 core. A conversation of 1,000 messages needs about 100,000.
struct Limits {
  int64_t steps = 2'000'000;
  /// Values and output alive together, as allocated. What the process grows by stays below 32 MiB:
  /// the allocator's own holes take about a fifth.
  int64_t bytes = int64_t{24} << 20;
  int depth = 400;  ///< nested evaluations; one is at most about 2 KiB of stack
};

/// How deeply lists and dicts may be nested in each other.
inline constexpr int kMostValueDepth = 100;

/// Budgets of one rendering and its first error, which stays: after it every operation is a no-op,
/// so that callers test failed() only where it saves work. Used by one thread.
class Context {
 public:
  explicit Context(const Limits& limits)
      : limits_(limits), steps_left_(limits.steps), bytes_left_(limits.bytes) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  bool failed() const { return failed_; }
  const Error& error() const { return error_; }

  /// The first error wins. The message is prefixed with the line being evaluated.
  template <class... Args>
  void fail(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
    if (!failed_) set_error(code, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void fail(fmt::format_string<Args...> text, Args&&... args) {
    if (!failed_) {
      set_error(ErrorCode::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
    }
  }

  /// False when failed or run out (which is then the error).
  bool step(int64_t n = 1) {
    steps_left_ -= n;
    if (steps_left_ < 0) out_of_steps();
    return !failed_;
  }
  /// Looking at `n` bytes, or doing something as cheap `n` times.
  bool work(size_t n) { return step(static_cast<int64_t>(n / 64)); }

  bool take_bytes(int64_t n) {
    if (n > bytes_left_) out_of_bytes();
    if (failed_) return false;
    bytes_left_ -= n;
    return true;
  }
  void give_back_bytes(int64_t n) { bytes_left_ += n; }

  bool enter() {
    if (++depth_ > limits_.depth) out_of_depth();
    return !failed_;
  }
  void leave() { --depth_; }

  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

 private:
  void set_error(ErrorCode code, std::string message);
  void out_of_steps();
  void out_of_bytes();
  void out_of_depth();

  Limits limits_;
  int64_t steps_left_;
  int64_t bytes_left_;
  int depth_ = 0;
  int line_ = 0;
  bool failed_ = false;
  Error error_;
};

/// One level of nesting while it lives; false when it was one too many.
class Nested {
 public:
  explicit Nested(Context& context) : context_(context), ok_(context.enter()) {}
  ~Nested() { context_.leave(); }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  explicit operator bool() const { return ok_; }

 private:
  Context& context_;
  bool ok_;
};

/// Bytes taken from a context, given back when it dies. Constants of a template have none.
class Charge {
 public:
  Charge() = default;
  Charge(Context* context, int64_t bytes) : context_(context), bytes_(bytes) {}
  Charge(Charge&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (context_ != nullptr) context_->give_back_bytes(bytes_);
  }
  void add(int64_t bytes) { bytes_ += bytes; }

 private:
  Context* context_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace kvasir::jinja
