// strftime without the locale: English names, as the C locale has them.
#include <algorithm>
#include <ctime>
#include <iterator>

#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"

namespace kvasir::jinja {
namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

size_t wrapped(int value, int n) {
  return static_cast<size_t>(((value % n) + n) % n);
}

/// A letter that stands for other conversions.
struct Composite {
  char letter;
  const char* format;
};
constexpr Composite kComposites[] = {
    {'c', "%a %b %e %H:%M:%S %Y"}, {'D', "%m/%d/%y"}, {'x', "%m/%d/%y"}, {'F', "%Y-%m-%d"},
    {'r', "%I:%M:%S %p"},          {'R', "%H:%M"},    {'T', "%H:%M:%S"}, {'X', "%H:%M:%S"}};

/// A letter that stands for a number.
struct Number {
  char letter;
  char fill;  ///< '0', ' ', or 0: as many digits as it has
  int width;
  int (*value)(const std::tm&);
};
int hour12(const std::tm& t) {
  return t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
}
constexpr Number kNumbers[] = {
    {'C', '0', 2, [](const std::tm& t) { return (t.tm_year + 1900) / 100; }},
    {'d', '0', 2, [](const std::tm& t) { return t.tm_mday; }},
    {'e', ' ', 2, [](const std::tm& t) { return t.tm_mday; }},
    {'f', '0', 6, [](const std::tm&) { return 0; }},
    {'H', '0', 2, [](const std::tm& t) { return t.tm_hour; }},
    {'I', '0', 2, hour12},
    {'j', '0', 3, [](const std::tm& t) { return t.tm_yday + 1; }},
    {'k', ' ', 2, [](const std::tm& t) { return t.tm_hour; }},
    {'l', ' ', 2, hour12},
    {'m', '0', 2, [](const std::tm& t) { return t.tm_mon + 1; }},
    {'M', '0', 2, [](const std::tm& t) { return t.tm_min; }},
    {'S', '0', 2, [](const std::tm& t) { return t.tm_sec; }},
    {'u', 0, 1, [](const std::tm& t) { return t.tm_wday == 0 ? 7 : t.tm_wday; }},
    {'U', '0', 2, [](const std::tm& t) { return (t.tm_yday + 7 - t.tm_wday) / 7; }},
    {'w', 0, 1, [](const std::tm& t) { return t.tm_wday; }},
    {'W', '0', 2, [](const std::tm& t) { return (t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7; }},
    {'y', '0', 2, [](const std::tm& t) { return (t.tm_year + 1900) % 100; }},
    {'Y', 0, 4, [](const std::tm& t) { return t.tm_year + 1900; }},
};

/// Of one letter after %, composites excepted; nothing: unknown.
std::string conversion(char letter, const std::tm& t) {
  for (const Number& number : kNumbers) {
    if (number.letter != letter) continue;
    const int value = number.value(t);
    if (number.fill == '0') return fmt::format("{:0{}}", value, number.width);
    return number.fill == ' ' ? fmt::format("{:{}}", value, number.width)
                              : fmt::format("{}", value);
  }
  const std::string day = kDays[wrapped(t.tm_wday, 7)], month = kMonths[wrapped(t.tm_mon, 12)];
  switch (letter) {
    case 'a':
      return day.substr(0, 3);
    case 'A':
      return day;
    case 'b':
    case 'h':
      return month.substr(0, 3);
    case 'B':
      return month;
    case 'n':
      return "\n";
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return {};  // also z and Z: a time without a zone, as datetime.now() is
  }
}

}  // namespace

std::string format_time(Context& context, std::string_view format, const std::tm& time) {
  std::string out;
  constexpr size_t kMostBytes = 1000;
  if (format.size() > kMostBytes) {
    context.fail(ErrorCode::limit_exceeded, "a time format is longer than {} bytes", kMostBytes);
  }
  for (size_t i = 0; i < format.size() && context.step(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    ++i;
    // GNU's "-": no leading zeros or spaces.
    const bool is_plain = format[i] == '-' && i + 1 < format.size();
    if (is_plain) ++i;
    const auto* composite = std::find_if(std::begin(kComposites), std::end(kComposites),
                                         [&](const Composite& c) { return c.letter == format[i]; });
    std::string part = composite != std::end(kComposites)
                           ? format_time(context, composite->format, time)  // holds none itself
                           : conversion(format[i], time);
    const bool is_known = !part.empty() || format[i] == 'z' || format[i] == 'Z';
    if (!is_known) {
      context.fail("strftime_now does not know '%{}'", shortened(format.substr(i, 1)));
      return {};
    }
    if (is_plain) {
      const size_t first = part.find_first_not_of("0 ");
      part = first == std::string::npos ? "0" : part.substr(first);
    }
    out += part;
  }
  return out;
}

}  // namespace kvasir::jinja
