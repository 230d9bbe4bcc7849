// Operators, indices and slices with Python's meaning.
#pragma once

#include "core/text/jinja/ast.h"
#include "core/text/jinja/value.h"

namespace kvasir::jinja {

class Evaluator;

Value unary(Context& context, Operation operation, const Value& value);
/// + - * / // % **; errors as Python's, integers past 64 bits too (Python's are unbounded).
Value binary(Context& context, Operation operation, const Value& left, const Value& right);
/// == != < <= > >= in, not in.
bool compares(Evaluator& evaluator, Operation operation, const Value& left, const Value& right);
bool contains(Evaluator& evaluator, const Value& container, const Value& item);

/// container[index] for strings, lists, tuples and ranges; negative from the end.
Value item_at(Context& context, const Value& container, int64_t index, bool& found);
/// container[start:stop:step]; parts that are none are left out.
Value slice(Context& context, const Value& container, const Value& start, const Value& stop,
            const Value& step);
/// Bytes [begin, end) as a string value.
Value substring(Context& context, const Text& text, size_t begin, size_t end);

/// format % values
Value format_percent(Context& context, const Value& format, const Value& values);

}  // namespace kvasir::jinja
