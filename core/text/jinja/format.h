// Python's two ways of formatting: "%5.2f" % x and "{:>5}".format(x).
#pragma once

#include <string>
#include <string_view>

#include "core/text/jinja/builtin.h"
#include "core/text/jinja/value.h"

namespace kvasir::jinja {

/// [[fill]align][sign][#][0][width][,][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  ///< < > ^ =, or 0: the type's own
  char sign = '-';
  bool alternate = false;
  char thousands = 0;
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

/// A format spec of str.format; an error names the part that makes no sense.
FormatSpec read_spec(Context& context, std::string_view text);
/// The value as `spec` wants it, strings with their origin.
void append_formatted(TextBuilder& out, const Value& value, const FormatSpec& spec);

/// self.format(*arguments, **keywords), with attributes looked up as the sandbox allows.
Value format_braces(Evaluator& evaluator, const Value& self, Arguments& arguments);

}  // namespace kvasir::jinja
