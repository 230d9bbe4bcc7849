// Searching bytes in time linear in the text, whatever is searched for.
#pragma once

#include <string_view>

#include "core/text/jinja/context.h"

namespace kvasir::jinja {

/// Like string_view::find, which needs text x needle steps for needles like "aaa...ab".
size_t find_bytes(std::string_view text, std::string_view needle, size_t from = 0);

/// Like string_view::rfind; charged with its worst case, text x needle.
size_t find_bytes_from_right(Context& context, std::string_view text, std::string_view needle);

}  // namespace kvasir::jinja
