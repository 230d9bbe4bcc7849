// Scopes and captured output of the evaluator, as things that end with a C++ block.
#pragma once

#include <utility>

#include "core/text/jinja/evaluator.h"

namespace kvasir::jinja {

class Evaluator::Inner {
 public:
  explicit Inner(Evaluator& evaluator) : Inner(evaluator, evaluator.scope_) {}
  Inner(Evaluator& evaluator, std::shared_ptr<Scope> parent)
      : evaluator_(evaluator), outer_(std::exchange(evaluator.scope_, make(evaluator, parent))) {}
  ~Inner() { evaluator_.scope_ = std::move(outer_); }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;

  /// A fresh scope in place of this one: each turn of a loop has its own.
  void renew() { evaluator_.scope_ = make(evaluator_, evaluator_.scope_->parent); }

 private:
  static std::shared_ptr<Scope> make(Evaluator& evaluator, std::shared_ptr<Scope> parent) {
    constexpr int64_t kBytes = sizeof(Scope) + 48;
    auto scope = std::make_shared<Scope>();
    scope->parent = std::move(parent);
    if (evaluator.context_.take_bytes(kBytes)) scope->charge = Charge(&evaluator.context_, kBytes);
    return scope;
  }
  Evaluator& evaluator_;
  std::shared_ptr<Scope> outer_;
};

class Evaluator::Capture {
 public:
  explicit Capture(Evaluator& evaluator)
      : evaluator_(evaluator),
        builder_(evaluator.context_),
        outer_(std::exchange(evaluator.out_, &builder_)) {}
  ~Capture() { evaluator_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Value take() { return make_string(builder_); }

 private:
  Evaluator& evaluator_;
  TextBuilder builder_;
  TextBuilder* outer_;
};

}  // namespace kvasir::jinja
