#include "core/text/jinja/context.h"

namespace kvasir::jinja {

void Context::set_error(ErrorCode code, std::string message) {
  failed_ = true;
  error_.code = code;
  error_.message = line_ > 0 ? fmt::format("chat template, line {}: {}", line_, message)
                             : fmt::format("chat template: {}", message);
}

void Context::out_of_steps() {
  fail(ErrorCode::limit_exceeded, "the template needs more than {} steps of work", limits_.steps);
}

void Context::out_of_bytes() {
  fail(ErrorCode::limit_exceeded, "the template needs more than {} bytes of memory", limits_.bytes);
}

void Context::out_of_depth() {
  fail(ErrorCode::limit_exceeded, "the template nests or recurses deeper than {} levels",
       limits_.depth);
}

}  // namespace kvasir::jinja
