// Errors as values: every call that can fail returns a Result<T> or a Status.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace kvasir {

/// What kind of thing went wrong; the message says what and where, for people.
enum class ErrorCode {
  invalid_argument,  ///< the caller asked for something that makes no sense
  not_found,         ///< a file, model or name does not exist
  io,                ///< the operating system refused a read, write or map
  corrupt_file,      ///< a file breaks its own format
  unsupported,       ///< well-formed, but this build does not know it
  out_of_memory,     ///< an allocation failed or a budget would be exceeded
  limit_exceeded,    ///< longer than the context, a time or memory budget
  cancelled,         ///< the caller's CancelToken was set
  non_finite,        ///< logits were NaN or infinite
  internal,          ///< a fault of ours
};

/// A failed call: code for programs, one line without a final full stop for people.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

/// Either a value or an Error. Test it before use: `if (!r) return r.error();`
/// Not thread-safe as an object; a value type that owns what it holds.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), ok_(false) {}

  explicit operator bool() const { return ok_; }
  bool ok() const { return ok_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace kvasir
