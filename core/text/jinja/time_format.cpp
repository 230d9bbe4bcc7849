// strftime without the locale: English names, as the C locale has them.
#include <ctime>

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

/// Of one letter after %; a composite gives another format to be written out; nothing: unknown.
std::string conversion(char letter, const std::tm& t, bool& is_format) {
  const std::string day = kDays[wrapped(t.tm_wday, 7)], month = kMonths[wrapped(t.tm_mon, 12)];
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  is_format = letter == 'D' || letter == 'x' || letter == 'F' || letter == 'T' || letter == 'X' ||
              letter == 'R' || letter == 'c' || letter == 'r';
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
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'C':
      return fmt::format("{:02}", (t.tm_year + 1900) / 100);
    case 'd':
      return fmt::format("{:02}", t.tm_mday);
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'e':
      return fmt::format("{:2}", t.tm_mday);
    case 'f':
      return "000000";
    case 'F':
      return "%Y-%m-%d";
    case 'H':
      return fmt::format("{:02}", t.tm_hour);
    case 'I':
      return fmt::format("{:02}", hour12);
    case 'j':
      return fmt::format("{:03}", t.tm_yday + 1);
    case 'k':
      return fmt::format("{:2}", t.tm_hour);
    case 'l':
      return fmt::format("{:2}", hour12);
    case 'm':
      return fmt::format("{:02}", t.tm_mon + 1);
    case 'M':
      return fmt::format("{:02}", t.tm_min);
    case 'n':
      return "\n";
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'r':
      return "%I:%M:%S %p";
    case 'R':
      return "%H:%M";
    case 'S':
      return fmt::format("{:02}", t.tm_sec);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    case 'u':
      return fmt::format("{}", t.tm_wday == 0 ? 7 : t.tm_wday);
    case 'U':
      return fmt::format("{:02}", (t.tm_yday + 7 - t.tm_wday) / 7);
    case 'w':
      return fmt::format("{}", t.tm_wday);
    case 'W':
      return fmt::format("{:02}", (t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7);
    case 'y':
      return fmt::format("{:02}", (t.tm_year + 1900) % 100);
    case 'Y':
      return fmt::format("{}", t.tm_year + 1900);
    case 'z':
    case 'Z':
      return "";  // a time without a zone, as datetime.now() is
    case '%':
      return "%";
    default:
      return {};
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
    bool is_format = false;
    std::string part = conversion(format[i], time, is_format);
    const bool is_known = !part.empty() || format[i] == 'z' || format[i] == 'Z';
    if (!is_known) {
      context.fail("strftime_now does not know '%{}'", shortened(format.substr(i, 1)));
      return {};
    }
    if (is_format) part = format_time(context, part, time);  // composites hold no composites
    if (is_plain) {
      const size_t first = part.find_first_not_of("0 ");
      part = first == std::string::npos ? "0" : part.substr(first);
    }
    out += part;
  }
  return out;
}

}  // namespace kvasir::jinja
