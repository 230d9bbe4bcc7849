// Templates that want too much, or what they must not have.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "tests/text/template_cases.h"

// g++ defines the first two, clang answers the third.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

namespace kvasir::test {
namespace {

/// The error of a template rendered for one user message, or what it printed.
std::string fault(const std::string& source) {
  const Json input = Json::parse(R"({"messages": [{"role": "user", "content": "hi"}]})");
  const auto rendered = render(source, input);
  return rendered ? "printed: " + joined(*rendered).substr(0, 200) : rendered.error().message;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Peak resident memory of this process, from the kernel; 0 where it does not tell.
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

/// Does the template run in 32 MiB? Asked in a process of its own, where nothing freed before is
/// counted or lent.
bool fits_in_memory(const std::string& source) {
  const pid_t child = fork();
  if (child == 0) {
    const int64_t before = peak_bytes();
    fault(source);
    _exit(peak_bytes() - before < (int64_t{32} << 20) ? 0 : 1);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

std::string repeated(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

struct Hostile {
  std::string source;
  std::string error;  // part of the message
};

std::vector<Hostile> hostile_templates() {
  const std::string deep = "deep", steps = "steps", bytes = "bytes", levels = "levels";
  return {
      {"{% for i in range(10**9) %}x{% endfor %}", "range of 1000000000"},
      {"{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", steps},
      {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", steps},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", levels},
      {"{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}", levels},
      {"{{ 'x' * 10**12 }}", bytes},
      {"{{ [1] * 10**12 }}", bytes},
      {"{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
       "{% endfor %}",
       "more than"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
       "{% endfor %}",
       "more than"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(999) %}{% set ns.s = [ns.s] %}{% endfor "
       "%}",
       "nested deeper"},
      {"{% set ns = namespace(s={}) %}{% for i in range(999) %}{% set ns.s = {'k': ns.s} %}"
       "{% endfor %}",
       "nested deeper"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}"
       "{% endfor %}{{ ns.s }}",
       "more than"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}"
       "{% endfor %}{{ ns.s == ns.s }}{{ ns.s | tojson }}",
       steps},
      {"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", levels},
      {"{{ 'a' | replace('', 'b' * 100000) | replace('b', 'c' * 100000) }}", "more than"},
      {"{{ '%1000000000d' % 3 }}", "more than"},
      {"{{ '%.999999999f' % 3 }}", "precision"},
      {"{{ 'x' | center(1000000000) }}", "more than"},
      {"{{ '{:>1000000000}'.format(1) }}", "more than"},
      {"{{ 'x' | indent(1000000000) }}", "more than"},
      {"{{ [1] | batch(1000000000, 1) | list }}", "more than"},
      {"{{ [1] | slice(1000000000) | list }}", "more than"},
      {"{% set s = 'ab' * 500000 %}{% for i in range(99999) %}{{ s | upper | length }}{% endfor %}",
       steps},
      {"{% set s = 'a' * 100000 %}{% for i in range(9999) %}{{ s.rfind(s[1:] ~ 'b') }}{% endfor %}",
       steps},
      {"{% set s = 'a' * 100000 %}{% for i in range(9999) %}{{ s.find(s[1:] ~ 'b') }}{% endfor %}",
       steps},
      {"{{" + repeated("(", 100000) + "1" + repeated(")", 100000) + "}}", "too"},
      {"{{" + repeated("(", 40000) + "1" + repeated(")", 40000) + "}}", deep},
      {"{{" + repeated("[", 40000) + "1" + repeated("]", 40000) + "}}", deep},
      {"{{" + repeated("{1:", 20000) + "1" + repeated("}", 20000) + "}}", deep},
      {"{{" + repeated("not ", 90000) + "1 }}", deep},
      {"{{" + repeated("-", 90000) + "1 }}", deep},
      {"{{ 1" + repeated("+1", 40000) + "}}", deep},
      {"{{ a" + repeated(".a", 40000) + "}}", deep},
      {"{{ a" + repeated("[0]", 30000) + "}}", deep},
      {"{{ a" + repeated("|e", 40000) + "}}", deep},
      {"{{ f" + repeated("(f", 30000) + repeated(")", 30000) + "}}", deep},
      {"{{ 1" + repeated(" if 1 else 1", 20000) + "}}", deep},
      {repeated("{% if 1 %}", 20000), deep},
      {repeated("{% for i in [1] %}", 10000), deep},
      {"{% set " + repeated("(", 40000) + "a" + repeated(")", 40000) + " = 1 %}", deep},
      {std::string(600000, 'x'), "longer than"},
  };
}

/// What this thread has used of a CPU: waiting for one, on a busy machine, is not the template's doing.
double thread_ms() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) * 1e-6;
}

}  // namespace

TEST_CASE(
    "given templates that want too much, when they run, then each ends with an error that "
    "names what ran out, in 100 ms and 32 MiB") {
  // Sanitizers cost about ten times the time and their own memory.
  const double allowed_ms = kIsSanitized ? 2000 : 100;
  const bool measures_memory = !kIsSanitized;
  for (const Hostile& hostile : hostile_templates()) {
    CAPTURE(hostile.source.substr(0, 120));
    double best_ms = 1e9;  // of three: other programs share the caches
    for (int run = 0; run < 3; ++run) {
      const double start = thread_ms();
      const std::string message = fault(hostile.source);
      best_ms = std::min(best_ms, thread_ms() - start);
      CHECK_MESSAGE(holds(message, hostile.error), message);
      CHECK_MESSAGE(holds(message, "line 1") == (hostile.error != "longer than"), message);
      if (best_ms < allowed_ms) break;
    }
    CHECK(best_ms < allowed_ms);
    if (measures_memory) CHECK(fits_in_memory(hostile.source));
  }
}

TEST_CASE("given a small stack, when templates nest as deeply as they may, then it is enough") {
  std::string message;
  std::thread thread([&] {
    // The deepest: macros inside call blocks inside loops, until the levels run out.
    message = fault(
        "{% macro f(n) %}{% for i in [1] %}{% call f(n) %}{{ [[[(f(n))]]] }}{% endcall %}"
        "{% endfor %}{{ caller() }}{% endmacro %}{{ f(1) }}");
  });
  thread.join();
  CHECK_MESSAGE(holds(message, "levels"), message);
}

TEST_CASE(
    "given a sandbox, when a template reaches for internals or changes values, then it fails") {
  CHECK(holds(fault("{{ ''.__class__.__mro__ }}"), "'__class__' of 'str' object is unsafe"));
  CHECK(holds(fault("{{ ''['__class__']['__mro__'] }}"), "unsafe"));
  CHECK(holds(fault("{{ ('' | attr('__class__')).__mro__ }}"), "unsafe"));
  CHECK(holds(fault("{{ '{0.__class__.__mro__}'.format('') }}"), "unsafe"));
  CHECK(holds(fault("{{ messages.append(1) }}"), "'append' of 'list' object is unsafe"));
  CHECK(holds(fault("{{ messages[0].update(x=1) }}"), "'update' of 'dict' object is unsafe"));
  CHECK(holds(fault("{{ messages[0].pop('role') }}"), "unsafe"));
  CHECK(holds(fault("{% set ns = namespace(_x=1) %}"), "underscore"));
  CHECK(holds(fault("{% set d = {} %}{% set d.x = 1 %}"), "no namespace"));
}

TEST_CASE(
    "given faults in templates, when they are parsed or run, then the error says line and name") {
  CHECK(fault("a\n{{ x|frobnicate }}") == "line 2: unknown filter 'frobnicate'");
  CHECK(fault("\n\n{{ x is frobnicated }}") == "line 3: unknown test 'frobnicated'");
  CHECK(fault("{{ 'a'.frob() }}") == "chat template, line 1: 'str object' has no attribute 'frob'");
  CHECK(fault("{{ frob() }}") == "chat template, line 1: 'frob' is undefined");
  CHECK(holds(fault("{% frob %}"), "line 1: unknown tag 'frob'"));
  CHECK(holds(fault("{% include 'x' %}"), "'include' is not supported"));
  CHECK(holds(fault("{% if x %}"), "expected 'endif'"));
  CHECK(holds(fault("{% for x in y %}{% endif %}{% endfor %}"), "unknown tag 'endif'"));
  CHECK(holds(fault("{{ 'abc"), "not closed"));
  CHECK(holds(fault("{{ (1] }}"), "unexpected ']', expected ')'"));
  CHECK(holds(fault("{# never closed"), "end of comment"));
  CHECK(holds(fault("{{ 99999999999999999999 }}"), "64 bits"));
  CHECK(holds(fault("{{ 2 ** 64 }}"), "64 bits"));
  CHECK(holds(fault("{% break %}"), "outside a loop"));
  CHECK(holds(fault("{{ 'a' | replace('b') }}"), "filter 'replace' needs the argument 'new'"));
  CHECK(holds(fault("{{ 'a' | upper(1) }}"), "filter 'upper' takes at most 0 arguments"));
  CHECK(holds(fault("{{ 'a' | trim(x=1) }}"), "argument 'x'"));
  CHECK(holds(fault("{{ [1] | map('frob') | list }}"), "unknown filter 'frob'"));
  CHECK(holds(fault("{{ [1] | select('frob') | list }}"), "unknown test 'frob'"));
  CHECK(holds(fault("{{ '\xFF' }}"), "not valid UTF-8"));
}

TEST_CASE("given an unknown filter inside an if, when it does not run, then the template works") {
  CHECK(fault("{% if false %}{{ x|frobnicate }}{% endif %}ok") == "printed: ok");
  CHECK(holds(fault("{% if true %}{{ x|frobnicate }}{% endif %}"), "unknown filter 'frobnicate'"));
  CHECK(fault("{{ x|frobnicate if false else 'ok' }}") == "printed: ok");
}

TEST_CASE(
    "given a role or content that is not UTF-8, when it is rendered, then the error says where") {
  const auto parsed = ChatTemplate::parse("{{ messages[0].content }}");
  REQUIRE(parsed.ok());
  const auto rendered = (*parsed)->render({{"user", "ab\xC3"}}, false, "", "");
  REQUIRE_FALSE(rendered.ok());
  CHECK(holds(rendered.error().message, "'messages' is not valid UTF-8 at byte 2"));
}

TEST_CASE("given one parsed template, when threads render it together, then all get the same") {
  const auto parsed = ChatTemplate::parse(
      "{% macro f(x) %}[{{ x|upper }}]{% endmacro %}{% for m in messages %}{{ f(m.content) }}"
      "{{ loop.index }}{% endfor %}");
  REQUIRE(parsed.ok());
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto spans = (*parsed)->render({{"user", "a"}, {"user", "b"}}, false, "", "");
        result = spans ? joined(*spans) : spans.error().message;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == "[A]1[B]2");
}

}  // namespace kvasir::test
